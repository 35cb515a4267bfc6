"""What a suite reports to a CI system: JUnit, SARIF, GitHub's annotations and step summary.

run_text        one run's failure text with the command that repeats it; its properties
places          where in its file a scenario says what was not met
github          annotations and the step summary of GitHub Actions
markdown        the step summary
junit           JUnit's XML, as GitLab and others read it
sarif           SARIF 2.1.0, for code-scanning views
"""
