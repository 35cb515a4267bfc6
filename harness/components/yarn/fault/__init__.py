"""What is done to YARN's daemons; one module each."""
