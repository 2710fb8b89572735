import java.io.InputStream;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/** Storage that is never asked for anything: topics only need to be allowed to want it. */
public class NoStorage implements RemoteStorageManager {
    public void configure(Map<String, ?> configs) {}

    public void close() {}

    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata metadata, LogSegmentData data) {
        return Optional.empty();
    }

    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start) {
        return InputStream.nullInputStream();
    }

    public InputStream fetchLogSegment(RemoteLogSegmentMetadata metadata, int start, int end) {
        return InputStream.nullInputStream();
    }

    public InputStream fetchIndex(RemoteLogSegmentMetadata metadata, IndexType type) {
        return InputStream.nullInputStream();
    }

    public void deleteLogSegmentData(RemoteLogSegmentMetadata metadata) {}
}
