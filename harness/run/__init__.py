"""One run of one scenario: `harness.run.loop.run` is the loop that acts, the rest are its parts.

supervisor  keeps the driver running        schedule  the steps, in order          evidence  does a fault, proves it
feed        hands records to the producer   live      starts and ends all parts    drain     after the schedule
snap        where everything stood          before    effect and sink, before the first record
plan        every choice that was made      begin     what is saved before it      loop      the run itself
progress/   how far the pipeline has got    controls/ the same run without faults
"""
