// A reliable receiver, for a feed of numbered records that can be asked again:
//
// GET /end                        how many there are
// GET /records?start=10&end=20    the records 10 to 19, a line each
//
// `store` returns when the block is in the write-ahead log, and the driver has logged its name. Only then is its end kept
// in a file, from which the next receiver goes on. A crash in between has those records stored again: at least once.
// Without a file it is not reliable: the next receiver begins with the first record.
// The number of its first record is the block's metadata. Janino knows no lambda.

import java.io.File;
import java.io.InputStream;
import java.net.URL;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.nio.file.CopyOption;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.api.java.StorageLevels;
import org.apache.spark.streaming.receiver.Receiver;

public class FeedReceiver extends Receiver implements Runnable {
    private static final long serialVersionUID = 1L;
    private static final int RECORDS = 50;
    private static final int PAUSE_MS = 100;
    private static final int ANSWER_MS = 30000;
    private String feed;
    private String place;

    public FeedReceiver() {
        super(StorageLevels.MEMORY_AND_DISK_SER);
    }

    public void reads(String feed, String place) {
        this.feed = feed;
        this.place = place;
    }

    public void onStart() {
        new Thread(this, "feed").start();
    }

    public void onStop() {
    }

    public void run() {
        try {
            long next = kept();
            while (!isStopped()) {
                long end = Math.min(Long.parseLong(answer("/end").trim()), next + RECORDS);
                if (end == next) {
                    Thread.sleep(PAUSE_MS);
                } else {
                    List lines = Arrays.asList((Object[]) answer("/records?start=" + next + "&end=" + end).split("\n"));
                    store(lines.iterator(), Long.valueOf(next));
                    next = end;
                    keep(next);
                }
            }
        } catch (Throwable failure) {
            restart("the feed cannot be read", failure);
        }
    }

    private String answer(String path) throws Exception {
        URLConnection connection = new URL(feed + path).openConnection();
        connection.setConnectTimeout(ANSWER_MS);
        connection.setReadTimeout(ANSWER_MS);
        InputStream body = connection.getInputStream();
        try {
            return new String(body.readAllBytes(), StandardCharsets.UTF_8);
        } finally {
            body.close();
        }
    }

    private long kept() throws Exception {
        Path file = new File(place).toPath();
        if (place.isEmpty() || !Files.exists(file, new LinkOption[0])) {
            return 0;
        }
        return Long.parseLong(new String(Files.readAllBytes(file), StandardCharsets.UTF_8));
    }

    private void keep(long next) throws Exception {
        if (place.isEmpty()) {
            return;
        }
        Path written = new File(place + ".tmp").toPath();
        Files.write(written, Long.toString(next).getBytes(StandardCharsets.UTF_8), new OpenOption[0]);
        Files.move(written, new File(place).toPath(), new CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
    }
}
