@main enum PurchasesMain { static func main() {} }
