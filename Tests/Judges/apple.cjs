// Apple's library for Node over tokens: reads {"id", "kind", "environment", "root", "bundle", "token"} a line,
// writes {"id", "said"} a line.
//   node apple.cjs NODE_MODULES APP_APPLE_ID < tokens > verdicts
const fs = require("fs");
const path = require("path");
const readline = require("readline");

const [modules, apple] = process.argv.slice(2);
const library = require(path.join(modules, "@apple/app-store-server-library"));

const verifiers = new Map();
function verifier(root, environment, bundle) {
  const key = `${root} ${environment} ${bundle}`;
  if (!verifiers.has(key)) {
    verifiers.set(
      key, new library.SignedDataVerifier([fs.readFileSync(root)], false, environment, bundle, Number(apple)));
  }
  return verifiers.get(key);
}

const methods = {
  "transaction": "verifyAndDecodeTransaction", "renewal-info": "verifyAndDecodeRenewalInfo",
  "notification": "verifyAndDecodeNotification", "app-transaction": "verifyAndDecodeAppTransaction",
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const { id, kind, environment, root, bundle, token } = JSON.parse(line);
    let said;
    try {
      await verifier(root, environment, bundle)[methods[kind]](token);
      said = "verified";
    } catch (error) {
      said = error instanceof library.VerificationException
        ? library.VerificationStatus[error.status] : `raised ${error.constructor.name}`;
    }
    process.stdout.write(JSON.stringify({ id, said }) + "\n");
  }
})();
