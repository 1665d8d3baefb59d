import PurchasesJSON

/// What is measured and its limit, run in turns: ours, limit, ours, limit. A ratio is taken within each pair, so that what
/// else the machine does falls on both.
struct Row {
  let name: String
  let limitName: String
  /// What is counted per second.
  let unit: String
  /// The smallest ratio that is accepted; nil where it is only reported.
  let floor: Double?
  var pairs: [(ours: Sample, limit: Sample)] = []

  init(_ name: String, beside limitName: String, unit: String, floor: Double? = nil) {
    self.name = name
    self.limitName = limitName
    self.unit = unit
    self.floor = floor
  }

  mutating func measure(_ count: Int, ours: () throws -> Sample, limit: () throws -> Sample) throws {
    for _ in 0..<count { pairs.append((try ours(), try limit())) }
  }

  var ours: Spread { Spread(pairs.map(\.ours.rate)) }
  var limit: Spread { Spread(pairs.map(\.limit.rate)) }
  var ratio: Spread { Spread(pairs.map { $0.ours.rate / $0.limit.rate }) }
  /// The same by processor time, which other programs disturb less.
  var cpuRatio: Spread { Spread(pairs.map { $0.limit.cpuRate > 0 ? $0.ours.cpuRate / $0.limit.cpuRate : 0 }) }
  var isOK: Bool { floor.map { ratio.median >= $0 } ?? true }

  var json: JSON {
    .object(
      JSONObject([
        ("name", .string(name)), ("limit", .string(limitName)), ("unit", .string(unit)), ("ours", ours.json),
        ("limitRate", limit.json), ("ratio", ratio.json), ("cpuRatio", cpuRatio.json),
        ("floor", floor.map { .number("\($0)") } ?? .null), ("ok", .bool(isOK)),
      ]))
  }
}

/// Memory that must not grow with the work.
struct FlatMemory {
  let name: String
  let count: Int
  /// KiB.
  let memory: Sample.Memory
  let margin: Int

  var isOK: Bool { memory.most <= memory.early + margin }

  var json: JSON {
    .object(
      JSONObject([
        ("name", .string(name)), ("count", .integer(Int64(count))), ("kibAfterFifth", .integer(Int64(memory.early))),
        ("kibMost", .integer(Int64(memory.most))), ("kibAtEnd", .integer(Int64(memory.end))),
        ("marginKib", .integer(Int64(margin))), ("ok", .bool(isOK)),
      ]))
  }
}

/// What was measured and is held to a figure rather than to another program.
struct Claim {
  let name: String
  let text: String
  /// What is asked; nil where it is only told.
  let limit: String?
  let values: [(name: String, value: Double)]
  let isOK: Bool

  var json: JSON {
    .object(
      JSONObject(
        [("name", .string(name)), ("limit", limit.map { .string($0) } ?? .null)]
          + values.map { ($0.name, .number(Spread.text($0.value, 3))) } + [("ok", .bool(isOK))]))
  }
}

/// Median and extremes.
struct Spread {
  let median: Double
  let least: Double
  let most: Double

  init(_ values: [Double]) {
    let sorted = values.sorted()
    least = sorted.first ?? 0
    most = sorted.last ?? 0
    let middle = sorted.count / 2
    median =
      sorted.isEmpty ? 0 : sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }

  var json: JSON {
    .object(
      JSONObject([
        ("median", .number(Self.text(median, 3))), ("min", .number(Self.text(least, 3))),
        ("max", .number(Self.text(most, 3))),
      ]))
  }

  /// The median, and the extremes.
  var text: String { "\(Self.text(median, 2)) (\(Self.text(least, 2))-\(Self.text(most, 2)))" }

  static func text(_ value: Double, _ decimals: Int) -> String {
    let scale = (0..<decimals).reduce(1.0) { product, _ in product * 10 }
    let scaled = (value * scale).rounded()
    let (whole, rest) = Int(scaled).quotientAndRemainder(dividingBy: Int(scale))
    guard decimals > 0 else { return "\(whole)" }
    let digits = String(rest)
    return "\(whole)." + String(repeating: "0", count: decimals - digits.count) + digits
  }
}

/// The table for people.
enum Report {
  static func text(_ rows: [Row], _ memory: [FlatMemory], _ claims: [Claim], _ notes: [String]) -> String {
    var lines = [["", "ours", "limit", "ratio", "min-max", "by CPU", "floor", ""]]
    for row in rows {
      lines.append([
        row.name, "\(Spread.text(row.ours.median, 0)) \(row.unit)/s",
        "\(Spread.text(row.limit.median, 0)) \(row.unit)/s",
        Spread.text(row.ratio.median, 2), "\(Spread.text(row.ratio.least, 2))-\(Spread.text(row.ratio.most, 2))",
        Spread.text(row.cpuRatio.median, 2), row.floor.map { Spread.text($0, 2) } ?? "-",
        row.floor == nil ? "" : row.isOK ? "ok" : "BELOW",
      ])
    }
    let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    var text = ""
    for line in lines {
      for (index, cell) in line.enumerated() {
        let padding = String(repeating: " ", count: widths[index] - cell.count)
        text += index == 0 ? cell + padding : "  " + padding + cell
      }
      text += "\n"
    }
    text += "\n"
    for row in rows { text += "\(row.name): beside \(row.limitName)\n" }
    text += "\n"
    for note in notes { text += note + "\n" }
    for flat in memory {
      text +=
        "memory, \(flat.name): \(flat.memory.early / 1024) MiB after a fifth of \(flat.count), at most "
        + "\(flat.memory.most / 1024) MiB from there on, \(flat.memory.end / 1024) MiB at the end; "
        + "may grow by \(flat.margin / 1024) MiB: \(flat.isOK ? "ok" : "GROWS")\n"
    }
    for claim in claims {
      let asked = claim.limit.map { " (asked: \($0)): \(claim.isOK ? "ok" : "NOT MET")" } ?? ""
      text += "\(claim.name): \(claim.text)\(asked)\n"
    }
    return text
  }
}
