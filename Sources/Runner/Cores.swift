import Dispatch
import Glibc
import Synchronization

/// Work on many values that neither depends on its order nor blocks, spread over the machine's cores. Used for what is a
/// plain function of one record (reading it, judging it, writing the records that it led to) and for lanes of a batch.
/// Seen by the package alone: the bench measures it.
package enum Cores {
  package static let count = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
  /// Values that are taken at one go: some hundred microseconds of work, so that handing them out costs nothing.
  package static let piece = 64

  /// The outcomes in the order of the inputs.
  package static func map<Input: Sendable, Output: Sendable>(
    _ inputs: [Input], piece: Int = piece, _ transform: @Sendable (Input) -> Output
  ) -> [Output] {
    let pieces = (inputs.count + piece - 1) / piece
    guard count > 1, pieces > 1 else { return inputs.map(transform) }
    let outcomes = Mutex<[[Output]]>(Array(repeating: [], count: pieces))
    DispatchQueue.concurrentPerform(iterations: pieces) { index in
      let outcome = inputs[index * piece..<min(inputs.count, (index + 1) * piece)].map(transform)
      outcomes.withLock { $0[index] = outcome }
    }
    return outcomes.withLock { Array($0.joined()) }
  }
}
