"""Where the input goes in, a Kafka topic: the producer sends it, and reads back what was committed."""
