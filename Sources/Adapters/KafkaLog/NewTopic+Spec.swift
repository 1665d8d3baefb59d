import PurchasesContracts
import PurchasesKafka

extension NewTopic {
  /// Kafka's own framing of a batch and a record around the bytes that a topic is to take.
  private static let framingBytes = 1024
  /// librdkafka's own size of a batch.
  static let batchBytes = 1_000_000

  init(_ topic: TopicSpec) {
    var settings = [
      "cleanup.policy": topic.isCompacted ? "compact" : "delete",
      "max.message.bytes": String(topic.maximumBytes + NewTopic.framingBytes),
      // "Durable" means on more than one broker wherever there is more than one copy to wait for.
      "min.insync.replicas": String(max(1, Int(topic.replication) - 1)),
    ]
    if !topic.isCompacted {
      settings["retention.ms"] = "-1"
      settings["retention.bytes"] = "-1"
    }
    self.init(
      name: topic.name, partitions: topic.partitions, replication: Int32(topic.replication), settings: settings)
  }
}
