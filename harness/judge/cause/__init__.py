"""Which hit caused a finding.

causes        the findings of one sink, with the hits that explain them and those that fit
hit_of_total  wrong totals
shown         what the sink held at each hit, afterwards and in the end
certain       what a weaker guarantee allows
mismatch      whether effect and pipeline fit at all
"""
