import CPurchasesCrypto

/// Owns one OpenSSL certificate.
///
/// `@unchecked Sendable`: the certificate is never changed after reading; OpenSSL guards what it computes lazily with a
/// lock of its own.
final class CertificateHandle: @unchecked Sendable {
  let pointer: OpaquePointer

  /// Takes over the caller's reference.
  init(_ pointer: OpaquePointer) { self.pointer = pointer }

  deinit { X509_free(pointer) }

  /// Nil unless the bytes are exactly one certificate in DER.
  convenience init?(der: [UInt8]) {
    guard let found = readingDER(der, free: { X509_free($0) }, { d2i_X509(nil, $0, $1) }) else { return nil }
    self.init(found)
    // OpenSSL reads BER as well; only the one DER spelling comes back out as it went in.
    guard encodedDER({ i2d_X509(pointer, $0) }) == der else { return nil }
  }

  var publicKey: KeyHandle? {
    guard let key = X509_get_pubkey(pointer) else {
      clearOpenSSLErrors()
      return nil
    }
    return KeyHandle(key)
  }

  /// As it was read: encoding the key anew costs half a signature check.
  var spki: [UInt8] { encodedDER { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), $0) } }

  func isSigned(by key: KeyHandle) -> Bool {
    let valid = X509_verify(pointer, key.pointer) == 1
    if !valid { clearOpenSSLErrors() }
    return valid
  }
}

/// The text form of an object identifier in dotted numbers.
func dottedOID(_ object: OpaquePointer?) -> String {
  var text = [CChar](repeating: 0, count: 128)
  let length = Int(OBJ_obj2txt(&text, Int32(text.count), object, 1))
  guard length > 0 else { return "" }
  if length >= text.count {
    text = [CChar](repeating: 0, count: length + 1)
    OBJ_obj2txt(&text, Int32(text.count), object, 1)
  }
  return String(decoding: text.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Milliseconds since 1970; nil if the field is no time as RFC 5280 has it: to the second and in UTC, where OpenSSL would
/// also read minutes and offsets.
func epochMilliseconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
  var parts = tm()
  guard let time, isPlainUTC(time), ASN1_TIME_to_tm(time, &parts) == 1 else {
    clearOpenSSLErrors()
    return nil
  }
  return CalendarTime.epochSeconds(
    year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday), hour: Int(parts.tm_hour),
    minute: Int(parts.tm_min), second: Int(parts.tm_sec)) * 1000
}

private func isPlainUTC(_ time: UnsafePointer<ASN1_TIME>) -> Bool {
  let text = UnsafeBufferPointer(start: ASN1_STRING_get0_data(time), count: Int(ASN1_STRING_length(time)))
  // `YYMMDDhhmmssZ`, or with four digits for the year.
  return [13, 15].contains(text.count) && text.last == UInt8(ascii: "Z")
}

enum CalendarTime {
  /// Days are counted in years that begin in March, so that the leap day is the last.
  static func epochSeconds(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
  }
}
