"""One run of one scenario: `harness.run.loop.run` is the loop that acts, the rest are its parts.

supervisor  keeps the driver running        observer  follows the checkpoints      progress  how far it says it is
feed        hands records to the producer   schedule  the steps, in order          evidence  does a fault, proves it
live        starts and ends all parts       drain     after the schedule           snap      where everything stood
before      effect and sink, before the first record
rhythm      how often its queries commit    pace    whether it stalls, how long to settle    controls   the same, unhurt
"""
