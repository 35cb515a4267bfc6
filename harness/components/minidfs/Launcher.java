// Starts a NameNode and a DataNode of Hadoop's in this JVM, by the settings on its class path: [CLUSTER]. Under that name
// the NameNode's folder is made first.
//
// They are the same as in two processes. Hadoop's MiniDFSCluster, which also has both in one JVM, chooses its ports and
// folders itself. Compiled in memory at each start by the Janino that Spark ships, so that a Java runtime
// does, without a compiler.

import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.common.HdfsServerConstants;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

public class Launcher {
    public static void main(String[] arguments) {
        // Else the second daemon is refused for what each of them counts of its JVM.
        DefaultMetricsSystem.setMiniClusterMode(true);
        try {
            if (arguments.length > 0) {
                HdfsServerConstants.StartupOption.FORMAT.setClusterId(arguments[0]);
                NameNode.format(new HdfsConfiguration());
            }
            NameNode.createNameNode(new String[0], new HdfsConfiguration());
            DataNode.createDataNode(new String[0], new HdfsConfiguration());
            Thread.currentThread().join();
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }
}
