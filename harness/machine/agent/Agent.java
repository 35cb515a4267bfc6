// What of Spark the harness sees, and where it can stop it. Compiled by the Janino that Spark ships, once for each version.
package org.onceproof;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.spark.SparkEnv;
import org.apache.spark.Success$;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import PACKAGE.CheckpointFileManager;

/** Hands each call on to the manager that Spark would have made, and reports each operation that changes the checkpoint. */
public final class Agent implements CheckpointFileManager {
    static final String KEY = "spark.sql.streaming.checkpointFileManagerClass";
    /** The manager that the pipeline asks for. */
    static final String ASKED = "onceproof.checkpointFileManagerClass";

    private final CheckpointFileManager spark;

    public Agent(Path path, Configuration conf) {
        Configuration without = new Configuration(conf);
        String asked = conf.get(ASKED);
        if (asked == null) {
            without.unset(KEY);
        } else {
            without.set(KEY, asked);
        }
        this.spark = PACKAGE.CheckpointFileManager$.MODULE$.create(path, without);
    }

    public PACKAGE.CheckpointFileManager$CancellableFSDataOutputStream createAtomic(Path path, boolean overwrites) {
        Channel.operation("create", "before", path);
        PACKAGE.CheckpointFileManager$CancellableFSDataOutputStream made = spark.createAtomic(path, overwrites);
        Channel.operation("create", "after", path);
        return new Renamed(made, path);
    }

    public FSDataInputStream open(Path path) {
        return spark.open(path);
    }

    public FileStatus[] list(Path path, PathFilter filter) {
        return spark.list(path, filter);
    }

    public FileStatus[] list(Path path) {
        return spark.list(path);
    }

    public void mkdirs(Path path) {
        Channel.operation("mkdirs", "before", path);
        spark.mkdirs(path);
        Channel.operation("mkdirs", "after", path);
    }

    public boolean exists(Path path) {
        return spark.exists(path);
    }

    public void delete(Path path) {
        Channel.operation("delete", "before", path);
        spark.delete(path);
        Channel.operation("delete", "after", path);
    }

    public boolean isLocal() {
        return spark.isLocal();
    }

    public Path createCheckpointDirectory() {
        return spark.createCheckpointDirectory();
    }
}

/** A file that appears under its name when it is closed. */
final class Renamed extends PACKAGE.CheckpointFileManager$CancellableFSDataOutputStream {
    private final PACKAGE.CheckpointFileManager$CancellableFSDataOutputStream stream;
    private final Path path;
    private boolean ended;

    Renamed(PACKAGE.CheckpointFileManager$CancellableFSDataOutputStream stream, Path path) {
        super(stream);
        this.stream = stream;
        this.path = path;
    }

    public synchronized void close() throws IOException {
        if (ended) {
            return;
        }
        ended = true;
        Channel.operation("rename", "before", path);
        stream.close();
        Channel.operation("rename", "after", path);
    }

    public synchronized void cancel() {
        if (ended) {
            return;
        }
        ended = true;
        Channel.operation("cancel", "before", path);
        stream.cancel();
        Channel.operation("cancel", "after", path);
    }
}

/** Reports tasks, executors and queries. The listener bus is asynchronous: what a killed driver had not passed on is lost. */
public final class Listener extends SparkListener {
    private final Map stages = new ConcurrentHashMap();

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        Properties properties = event.properties();
        String query = properties == null ? null : properties.getProperty("sql.streaming.queryId");
        String batch = properties == null ? null : properties.getProperty("streaming.sql.batchId");
        if (query != null && batch != null) {
            stages.put(Integer.valueOf(event.stageInfo().stageId()), ",\"query\":" + Channel.quoted(query) + ",\"batch\":" + batch);
        }
    }

    public void onTaskStart(SparkListenerTaskStart event) {
        task("task-started", event.stageId(), event.stageAttemptId(), event.taskInfo(), "");
    }

    public void onTaskEnd(SparkListenerTaskEnd event) {
        boolean well = event.reason() == Success$.MODULE$;
        String outcome = well ? "success" : event.reason().getClass().getSimpleName();
        task("task-ended", event.stageId(), event.stageAttemptId(), event.taskInfo(), ",\"outcome\":" + Channel.quoted(outcome));
    }

    private void task(String what, int stage, int stageTry, TaskInfo info, String more) {
        Object batch = stages.get(Integer.valueOf(stage));
        if (batch != null) {
            Channel.event(what, batch + ",\"stage\":" + stage + ",\"stage_attempt\":" + stageTry + ",\"partition\":" + info.index()
                + ",\"attempt_number\":" + info.attemptNumber() + ",\"executor\":" + Channel.quoted(info.executorId()) + more);
        }
    }

    public void onExecutorAdded(SparkListenerExecutorAdded event) {
        Channel.event("executor-added", ",\"executor\":" + Channel.quoted(event.executorId()));
    }

    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        Channel.event("executor-removed", ",\"executor\":" + Channel.quoted(event.executorId()));
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof StreamingQueryListener.QueryStartedEvent) {
            StreamingQueryListener.QueryStartedEvent started = (StreamingQueryListener.QueryStartedEvent) event;
            Channel.event("query-started", query(String.valueOf(started.id()), String.valueOf(started.runId()))
                + (started.name() == null ? "" : ",\"name\":" + Channel.quoted(started.name())));
        } else if (event instanceof StreamingQueryListener.QueryTerminatedEvent) {
            StreamingQueryListener.QueryTerminatedEvent ended = (StreamingQueryListener.QueryTerminatedEvent) event;
            Channel.event("query-ended", query(String.valueOf(ended.id()), String.valueOf(ended.runId()))
                + ",\"failed\":" + ended.exception().isDefined());
        }
    }

    private static String query(String id, String run) {
        return ",\"query\":" + Channel.quoted(id) + ",\"query_run\":" + Channel.quoted(run);
    }
}

/** One connection to the harness for each thread. Without a harness nothing is reported, and nothing waits. */
final class Channel {
    private static final int CONNECT_MS = 2000;
    private static final String ADDRESS = System.getenv("ONCEPROOF_AGENT");
    private static final ThreadLocal CHANNELS = new ThreadLocal();
    private static volatile boolean gone = ADDRESS == null;

    private final SocketChannel channel;
    private final Selector selector;
    private final SelectionKey key;

    private Channel() throws IOException, ReflectiveOperationException {
        if (ADDRESS.startsWith("/")) {
            // A socket file, which no fault of a container's network cuts. By name: Java has it from 16 on.
            Class addresses = Class.forName("java.net.UnixDomainSocketAddress");
            Object address = addresses.getMethod("of", new Class[] {String.class}).invoke(null, new Object[] {ADDRESS});
            channel = SocketChannel.open((SocketAddress) address);
        } else {
            int colon = ADDRESS.lastIndexOf(':');
            String host = ADDRESS.substring(0, colon);
            channel = SocketChannel.open();
            channel.socket().connect(new InetSocketAddress(host, Integer.parseInt(ADDRESS.substring(colon + 1))), CONNECT_MS);
            channel.socket().setTcpNoDelay(true);
        }
        // An interrupt closes a channel that blocks, and wakes a selector.
        channel.configureBlocking(false);
        selector = Selector.open();
        key = channel.register(selector, SelectionKey.OP_READ);
    }

    /** Return when the harness lets the operation go on. */
    static void operation(String operation, String when, Path path) {
        String text = ",\"op\":\"" + operation + "\",\"when\":\"" + when + "\",\"path\":" + quoted(path.toString());
        send("checkpoint-op", text, true);
    }

    static void event(String what, String more) {
        send(what, more, false);
    }

    private static void send(String what, String more, boolean waits) {
        if (gone) {
            return;
        }
        SparkEnv env = SparkEnv.get();
        String line = "{\"what\":\"" + what + "\",\"attempt\":" + quoted(System.getenv("ONCEPROOF_ATTEMPT"))
            + ",\"process\":" + quoted(env == null ? "" : env.executorId()) + more + ",\"waits\":" + waits + "}\n";
        // A thread that is interrupted meanwhile is interrupted again afterwards.
        boolean interrupted = Thread.interrupted();
        try {
            Channel here = (Channel) CHANNELS.get();
            while (here == null) {
                try {
                    here = new Channel();
                    CHANNELS.set(here);
                } catch (ClosedByInterruptException failure) {
                    interrupted = Thread.interrupted();
                }
            }
            interrupted |= here.say(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)), waits);
        } catch (Exception failure) {
            gone = true;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Return whether the thread was interrupted meanwhile. */
    private boolean say(ByteBuffer line, boolean waits) throws IOException {
        boolean interrupted = false;
        while (line.hasRemaining()) {
            if (channel.write(line) == 0) {
                interrupted |= await(SelectionKey.OP_WRITE);
            }
        }
        ByteBuffer answer = ByteBuffer.allocate(1);
        int read = waits ? 0 : 1;
        while (read == 0) {
            interrupted |= await(SelectionKey.OP_READ);
            read = channel.read(answer);
        }
        gone |= read < 0;
        return interrupted;
    }

    private boolean await(int operation) throws IOException {
        boolean interrupted = false;
        key.interestOps(operation);
        while (selector.select() == 0) {
            interrupted |= Thread.interrupted();
        }
        selector.selectedKeys().clear();
        return interrupted;
    }

    static String quoted(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder out = new StringBuilder("\"");
        for (int at = 0; at < text.length(); at++) {
            char each = text.charAt(at);
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each < ' ') {
                out.append(String.format("\\u%04x", new Object[] {Integer.valueOf(each)}));
            } else {
                out.append(each);
            }
        }
        return out.append('"').toString();
    }
}
