import PurchasesContracts
import PurchasesCore
import PurchasesTestKit
import Testing

struct RecordCodecTests {
  private func record(_ random: inout SeededRandom) -> Record {
    let names = ["", "ce_id", "content-type", "ü", "a name with spaces"]
    let headers = (0..<Int.random(in: 0...5, using: &random)).map { _ in
      Header(names.randomElement(using: &random) ?? "", random.bool() ? random.bytes(upTo: 20) : nil)
    }
    return Record(
      key: random.bool() ? random.bytes(upTo: 12) : nil, value: random.bool() ? random.bytes(upTo: 80) : nil,
      headers: headers, timestamp: Instant(milliseconds: .random(in: .min ... .max, using: &random)))
  }

  @Test func whatIsWrittenIsReadAndNothingShorterOrLongerIs() throws {
    var random = SeededRandom.seeded("RecordCodec")
    for _ in 0..<300 {
      let record = record(&random)
      let bytes = RecordCodec.encode(record)
      #expect(try RecordCodec.decode(bytes) == record)
      for count in 0..<bytes.count {
        #expect(throws: RecordCodec.Malformed.self) { try RecordCodec.decode(Array(bytes[..<count])) }
      }
      #expect(throws: RecordCodec.Malformed.self) { try RecordCodec.decode(bytes + [0]) }
    }
  }

  /// What two readers could take for the same record must be the same bytes: a decoded text that is written again differs
  /// in no byte, or it was not taken.
  @Test func noTwoFormsOfOneRecordAreTaken() throws {
    var random = SeededRandom.seeded("RecordCodec, damaged")
    for _ in 0..<2000 {
      var bytes = RecordCodec.encode(record(&random))
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
      }
      guard let read = try? RecordCodec.decode(bytes) else { continue }
      #expect(RecordCodec.encode(read) == bytes)
    }
  }

  @Test func theBytesAreThese() {
    let record = Record(
      key: [0x6b], value: nil, headers: [Header("h", [0xff]), Header("n", nil)], timestamp: Instant(milliseconds: 258))
    let parts: [[UInt8]] = [
      [0, 0, 0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 0x6b], [0, 0, 0, 2], [0, 0, 0, 1, 0x68], [0, 0, 0, 1, 0xff],
      [0, 0, 0, 1, 0x6e], [0xff, 0xff, 0xff, 0xff], [0xff, 0xff, 0xff, 0xff],
    ]
    #expect(RecordCodec.encode(record) == parts.flatMap { $0 })
  }

  @Test func absentAndEmptyAreNotTheSame() {
    let time = Instant(milliseconds: 0)
    let forms = [
      Record(key: nil, value: nil, timestamp: time), Record(key: [], value: nil, timestamp: time),
      Record(key: nil, value: [], timestamp: time), Record(key: [], value: [], timestamp: time),
      Record(key: nil, value: nil, headers: [Header("", nil)], timestamp: time),
      Record(key: nil, value: nil, headers: [Header("", [])], timestamp: time),
    ]
    #expect(Set(forms.map(RecordCodec.encode)).count == forms.count)
  }

  @Test func lengthsThatCannotBeAreRefusedBeforeAnythingIsReserved() {
    func refuses(_ parts: [UInt8]...) -> Bool {
      let bytes = parts.flatMap { $0 }
      do throws(RecordCodec.Malformed) {
        _ = try RecordCodec.decode(bytes)
        return false
      } catch { return true }
    }
    let time: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0]
    let none: [UInt8] = [0xff, 0xff, 0xff, 0xff]
    let one: [UInt8] = [0, 0, 0, 1]
    for length: [UInt8] in [[0x7f, 0xff, 0xff, 0xff], [0xff, 0xff, 0xff, 0xfe], [0x80, 0, 0, 0]] {
      #expect(refuses(time, length))
      #expect(refuses(time, none, length))
      #expect(refuses(time, none, one, length, none, none))
    }
    // A header's name that is no UTF-8, and one that is absent.
    #expect(refuses(time, none, one, one, [0xff], none, none))
    #expect(refuses(time, none, one, none, none, none))
    #expect(!refuses(time, none, one, one, [0x68], none, none))
  }

  @Test func outgoingRecordsSurviveTheOutbox() throws {
    var random = SeededRandom.seeded("OutboxCodec")
    let records = (0..<200).map { index in
      ProducedRecord(
        topic: index % 2 == 0 ? "purchases.owned" : "purchases.ü", partition: random.bool() ? Int32(index) : nil,
        record: record(&random))
    }
    var read: [ProducedRecord] = []
    for block in OutboxCodec.encode(records) { try OutboxCodec.decode(block, into: &read) }
    #expect(read == records)
    let large = ProducedRecord(
      topic: "t",
      record: Record(key: nil, value: Array(repeating: 1, count: OutboxCodec.blockBytes), timestamp: .distantPast))
    #expect(OutboxCodec.encode([large, records[0], records[1]]).count == 2)
    #expect(OutboxCodec.encode([]).isEmpty)
    let block = OutboxCodec.encode([records[0]])[0]
    for count in 1..<block.count {
      var rest: [ProducedRecord] = []
      #expect(throws: RecordCodec.Malformed.self) { try OutboxCodec.decode(Array(block[..<count]), into: &rest) }
    }
  }
}
