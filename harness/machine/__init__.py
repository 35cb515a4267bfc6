"""What a machine needs before anything is started: Java, jars, class data archives; and our own cache."""
