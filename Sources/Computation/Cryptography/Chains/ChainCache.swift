import Glibc
import Synchronization

/// Remembers chains that passed inspection, so that a further proof under the same chain costs one verification.
///
/// A cache belongs to one set of anchors. What it holds is independent of time: dates are checked at each use, so an
/// entry never makes a certificate outlive itself, and a replay of old proofs gets the answer it got at first. Failures
/// are not remembered: they would let a stranger push good chains out.
public final class ChainCache: Sendable {
  /// Apple signs with a handful of chains at a time; a replay over years meets a few dozen.
  public static let defaultCapacity = 128

  public let anchors: TrustAnchors
  private let capacity: Int
  private let state = Mutex(State())

  private struct State {
    var chains: [Hash256: JudgedChain] = [:]
    var headers: [ByteKey: Inspected] = [:]
    // Oldest first; what leaves when the cache is full.
    var chainOrder: [Hash256] = []
    var headerOrder: [ByteKey] = []
  }

  /// A chain that passed inspection, and the hash of the header that it came in as far as it goes: what is signed, and the
  /// proof as a whole, begin with it.
  public struct Inspected: Sendable {
    public let chain: JudgedChain
    public let beginning: SHA256.Beginning
  }

  public init(anchors: TrustAnchors, capacity: Int = ChainCache.defaultCapacity) {
    precondition(capacity > 0, "a cache that can't hold anything")
    self.anchors = anchors
    self.capacity = capacity
  }

  /// Same answer as ``ChainPolicy/judge(x5c:anchors:at:)``.
  public func judge(x5c: [[UInt8]], at time: Int64) -> Result<JudgedChain, ChainFailure> {
    do {
      return Self.answer(try chain(for: x5c), at: time)
    } catch {
      return .failure(error)
    }
  }

  /// The same by the header of a JWS as it stands on the wire: for one that was judged before, neither base64 nor JSON
  /// nor DER is read again. `x5c` is called for a header not seen yet; it must depend on the header alone and throw for
  /// every header that is unacceptable for another reason.
  public func judge<Failure: Error>(
    header: ArraySlice<UInt8>, at time: Int64, x5c: () throws(Failure) -> [[UInt8]]
  ) throws(Failure) -> Result<JudgedChain, ChainFailure> {
    switch try inspect(header: header, x5c: x5c) {
    case .success(let inspected): Self.answer(inspected.chain, at: time)
    case .failure(let failure): .failure(failure)
    }
  }

  /// All of the judgement that doesn't depend on time, for who learns the time only from what the chain signed;
  /// ``JudgedChain/failure(at:)`` is the rest.
  public func inspect<Failure: Error>(
    header: ArraySlice<UInt8>, x5c: () throws(Failure) -> [[UInt8]]
  ) throws(Failure) -> Result<Inspected, ChainFailure> {
    let key = ByteKey(bytes: header)
    if let known = state.withLock({ $0.headers[key] }) { return .success(known) }
    let certificates = try x5c()
    do {
      let inspected = Inspected(chain: try chain(for: certificates), beginning: SHA256.Beginning(header))
      // A copy of its own: the slice would keep the whole proof alive.
      let owned = ByteKey(bytes: Array(header)[...])
      state.withLock { state in
        guard state.headers.updateValue(inspected, forKey: owned) == nil else { return }
        state.headerOrder.append(owned)
        if state.headerOrder.count > capacity { state.headers[state.headerOrder.removeFirst()] = nil }
      }
      return .success(inspected)
    } catch {
      return .failure(error)
    }
  }

  /// How many chains are held.
  public var count: Int { state.withLock { $0.chains.count } }

  private static func answer(_ chain: JudgedChain, at time: Int64) -> Result<JudgedChain, ChainFailure> {
    if let failure = chain.failure(at: time) { return .failure(failure) }
    return .success(chain)
  }

  private func chain(for x5c: [[UInt8]]) throws(ChainFailure) -> JudgedChain {
    // Refused before hashing: the number and size of certificates are the sender's.
    guard x5c.count == ChainPolicy.length else { throw .wrongChainLength }
    guard x5c.allSatisfy({ $0.count <= Certificate.maximumByteCount }) else { throw .certificateMalformed }
    let digest = JudgedChain.digest(of: x5c)
    if let known = state.withLock({ $0.chains[digest] }) { return known }
    let chain = try ChainPolicy.inspect(x5c: x5c, anchors: anchors)
    state.withLock { state in
      guard state.chains.updateValue(chain, forKey: digest) == nil else { return }
      state.chainOrder.append(digest)
      if state.chainOrder.count > capacity { state.chains[state.chainOrder.removeFirst()] = nil }
    }
    return chain
  }
}

/// Bytes as a dictionary key, hashed in one call instead of one a byte. Compared whole, so that no collision can put one
/// header in the place of another.
private struct ByteKey: Hashable, Sendable {
  let bytes: ArraySlice<UInt8>

  static func == (left: Self, right: Self) -> Bool {
    left.bytes.withUnsafeBytes { left in
      right.bytes.withUnsafeBytes { right in
        guard left.count == right.count else { return false }
        guard let leftStart = left.baseAddress, let rightStart = right.baseAddress else { return left.isEmpty }
        return memcmp(leftStart, rightStart, left.count) == 0
      }
    }
  }

  func hash(into hasher: inout Hasher) {
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
  }
}
