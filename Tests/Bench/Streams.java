import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** What the entitlements stage is measured beside: Kafka Streams with exactly_once_v2 and a RocksDB store that is read and
 * written once per record, which produces each record again as it came: key, value, headers, timestamp.
 *
 *     Streams BROKERS GROUP INPUT OUTPUT STATE-FOLDER THREADS COMMIT-MS
 *
 * Reads from the beginning to the end as it stands, twice: the first pass, under a group of its own, is not counted, so that the
 * second is run by code that the machine has compiled. Prints "sample RECORDS SECONDS CPU-SECONDS" of the second: from the
 * moment at which the first task had its partition and its store to the last commit, and the processor time within. */
public final class Streams {
  private static final String STORE = "last";
  private static final int PATIENCE_SECONDS = 120;

  private static String brokers;

  /** One pass over the topic, as it is seen where records are taken and where they are committed. */
  private static final class Pass {
    /** Offset of each partition's last record. */
    final Map<TopicPartition, Long> last = new HashMap<>();
    final Map<TopicPartition, Long> committed = new ConcurrentHashMap<>();
    final CountDownLatch done = new CountDownLatch(1);
    long records;
    long began, beganCPU, ended, endedCPU;
    volatile Throwable failure;

    synchronized void begin() {
      if (began != 0) return;
      began = System.nanoTime();
      beganCPU = cpu();
    }

    synchronized void commit(Map<TopicPartition, Long> next) {
      committed.putAll(next);
      if (done.getCount() == 0) return;
      for (var end : last.entrySet()) {
        if (committed.getOrDefault(end.getKey(), 0L) <= end.getValue()) return;
      }
      ended = System.nanoTime();
      endedCPU = cpu();
      done.countDown();
    }
  }

  private static long cpu() {
    return ((com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean())
      .getProcessCpuTime();
  }

  /** Keeps the value's bytes under the record's key, having read what is there, and passes the record on. */
  private static final class Keep extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
    private final Pass pass;
    private KeyValueStore<byte[], byte[]> store;

    Keep(Pass pass) { this.pass = pass; }

    @Override public void init(ProcessorContext<byte[], byte[]> context) {
      super.init(context);
      store = context.getStateStore(STORE);
      pass.begin();
    }

    @Override public void process(Record<byte[], byte[]> record) {
      store.get(record.key());
      store.put(record.key(), record.value());
      context().forward(record);
      // Nobody waits for the interval where nothing more comes.
      var at = context().recordMetadata().orElseThrow();
      if (at.offset() == pass.last.get(new TopicPartition(at.topic(), at.partition()))) context().commit();
    }
  }

  /** The clients as they are, with an ear at the producers' commits. */
  private static final class Clients extends DefaultKafkaClientSupplier {
    private final Pass pass;

    Clients(Pass pass) { this.pass = pass; }

    @Override public Producer<byte[], byte[]> getProducer(Map<String, Object> settings) {
      return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer()) {
        private final Map<TopicPartition, Long> sent = new HashMap<>();

        @Override public void sendOffsetsToTransaction(
            Map<TopicPartition, OffsetAndMetadata> offsets, ConsumerGroupMetadata group) {
          super.sendOffsetsToTransaction(offsets, group);
          offsets.forEach((partition, offset) -> sent.put(partition, offset.offset()));
        }

        @Override public void commitTransaction() {
          super.commitTransaction();
          pass.commit(sent);
          sent.clear();
        }
      };
    }
  }

  /** Looks through the topic for how many records there are, and where it ends. */
  private static Pass look(String input) {
    var settings = new Properties();
    settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
    var pass = new Pass();
    try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partitions = consumer.partitionsFor(input).stream()
        .map(info -> new TopicPartition(info.topic(), info.partition())).toList();
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      var ends = consumer.endOffsets(partitions);
      while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
          pass.records++;
          pass.last.merge(new TopicPartition(record.topic(), record.partition()), record.offset(), Math::max);
        }
      }
    }
    return pass;
  }

  private static Pass run(String group, String input, String output, Path folder, String threads, String interval)
      throws Exception {
    var pass = look(input);
    var topology = new Topology();
    topology.addSource("in", new ByteArrayDeserializer(), new ByteArrayDeserializer(), input);
    topology.addProcessor("keep", () -> new Keep(pass), "in");
    topology.addStateStore(
      Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.ByteArray(), Serdes.ByteArray()), "keep");
    topology.addSink("out", output, new ByteArraySerializer(), new ByteArraySerializer(), "keep");
    var settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, group);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve(group).toString());
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, threads);
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, interval);
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, "1");
    settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    // As many records at a time as our stage takes, and room for them; batches of the producer that hold many records.
    settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), "4096");
    settings.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, "4096");
    settings.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), "262144");
    settings.put(StreamsConfig.producerPrefix(ProducerConfig.BUFFER_MEMORY_CONFIG), "134217728");
    settings.put(StreamsConfig.producerPrefix(ProducerConfig.MAX_REQUEST_SIZE_CONFIG), "12582912");
    try (var streams = new KafkaStreams(topology, settings, new Clients(pass))) {
      streams.setUncaughtExceptionHandler(failure -> {
        pass.failure = failure;
        pass.done.countDown();
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
      });
      streams.start();
      if (!pass.done.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) throw new IllegalStateException("not done in time");
      if (pass.failure != null) throw new IllegalStateException(pass.failure);
    }
    return pass;
  }

  public static void main(String[] words) throws Exception {
    if (words.length != 7) {
      System.err.println("usage: Streams BROKERS GROUP INPUT OUTPUT STATE-FOLDER THREADS COMMIT-MS");
      System.exit(2);
    }
    brokers = words[0];
    var folder = Files.createDirectories(Path.of(words[4]));
    run(words[1] + ".warm", words[2], words[3], folder, words[5], words[6]);
    var pass = run(words[1], words[2], words[3], folder, words[5], words[6]);
    System.out.printf(
      Locale.ROOT, "sample %d %.6f %.6f%n", pass.records, (pass.ended - pass.began) * 1e-9,
      (pass.endedCPU - pass.beganCPU) * 1e-9);
    System.out.flush();
    // Its threads are over; nothing else is waited for.
    Runtime.getRuntime().halt(0);
  }
}
