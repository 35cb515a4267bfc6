"""What Hadoop's daemons have in common, HDFS's and YARN's: the jars, their settings, a JVM on them.

daemon      one of them as a child process
settings    the files of settings that it and its clients read
"""
