extension Envelope.Origin {
  /// The record that a record of this topic comes from; nil where it does not say. A record in quarantine keeps the headers
  /// of the record that it was, its source's among them: there the runner's own mark tells.
  public init?(of record: Record, in topic: Topic) {
    if topic == .quarantine {
      guard let mark = QuarantineMark(record) else { return nil }
      self.init(coordinates: mark.origin, index: mark.index, count: mark.count)
      return
    }
    guard let source = record.headerText("ce_origintopic"),
      let partition = record.headerText("ce_originpartition").flatMap({ Int32($0) }), partition >= 0,
      let offset = record.headerText("ce_originoffset").flatMap({ Int64($0) }), offset >= 0,
      let index = record.headerText("ce_outputindex").flatMap({ Int($0) }), index >= 0,
      let count = record.headerText("ce_outputcount").flatMap({ Int($0) })
    else { return nil }
    self.init(
      coordinates: Coordinates(topic: source, partition: partition, offset: offset), index: index, count: count)
  }
}
