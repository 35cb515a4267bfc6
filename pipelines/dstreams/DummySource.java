// The receiver of the YARN article's example: it numbers what it gets by a counter in memory, which begins at 0 with
// each start, and takes the time. Where the example sleeps between two values, this one waits for a line on a socket.
//
// Its blocks are in memory or on disk, each on two executors, as far as there are two. Janino knows no lambda.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.StorageLevels;
import org.apache.spark.streaming.receiver.Receiver;

public class DummySource extends Receiver implements Runnable {
    private static final long serialVersionUID = 1L;
    private String host;
    private int port;

    public DummySource() {
        super(StorageLevels.MEMORY_AND_DISK_2);
    }

    public void reads(String host, int port) {
        this.host = host;
        this.port = port;
    }

    public void onStart() {
        new Thread(this, "Dummy Source").start();
    }

    public void onStop() {
    }

    public void run() {
        long counter = 0;
        try {
            Socket socket = new Socket(host, port);
            try {
                BufferedReader lines =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
                String line = lines.readLine();
                while (!isStopped() && line != null) {
                    // What comes within a moment is one block, and so one task.
                    Thread.sleep(50);
                    List values = new ArrayList();
                    values.add(counter++ + "\t" + System.currentTimeMillis() + "\t" + line);
                    while (lines.ready()) {
                        values.add(counter++ + "\t" + System.currentTimeMillis() + "\t" + lines.readLine());
                    }
                    store(values.iterator());
                    line = lines.readLine();
                }
            } finally {
                socket.close();
            }
        } catch (Throwable failure) {
            restart("the socket cannot be read", failure);
        }
    }
}
