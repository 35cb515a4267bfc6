"""What a team sees of many runs: one page, from the run folders and summaries of one machine or of several.

about      what a run's plan and history say of it, apart from its verdict
seen       one run in the page's words, from a run folder or from an entry of a summary
gather     everything below some folders: runs, what is damaged, suites and nights so far
pairs      which pipelines are the broken and the fixed version of each other
matrix     pipelines by faults
coverage   crash points by faults and sinks: struck, injected with nothing exposed, never struck
durations  where the seconds went
hunted     after how many plans a night found the pipelines that are expected to break
trend      suites and nights so far
page       the whole page as texts, and how much of it is shown
"""
