/// Who gets which partitions of a topic: members in order of their names take consecutive ranges, the first ones one more
/// where it doesn't come out even. The same number of partitions gives the same ranges, so a member holds the same
/// partition numbers of each topic.
enum RangeAssignment {
  static func range(of member: String, among members: [String], partitions: Int32) -> Range<Int32> {
    let sorted = members.sorted()
    guard let index = sorted.firstIndex(of: member).map(Int32.init) else { return 0..<0 }
    let count = Int32(sorted.count)
    let share = partitions / count
    let extra = partitions % count
    let start = index * share + min(index, extra)
    return start..<start + share + (index < extra ? 1 : 0)
  }
}
