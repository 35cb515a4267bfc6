"""Makes the class data archives: one short real run, each JVM ended cleanly."""
