// Apple's library for Node over the tokens of a file, again and again for so many seconds of processor time, on one core.
// Prints a sample line as the bench's own children do: count, seconds, seconds of processor time.
//   node apple_speed.cjs NODE_MODULES FOLDER SECONDS
// FOLDER holds `root.der` and `tokens`, one token a line.
const fs = require("fs");
const path = require("path");

const [modules, folder, seconds] = process.argv.slice(2);
const library = require(path.resolve(modules, "@apple/app-store-server-library"));
const root = fs.readFileSync(path.join(folder, "root.der"));
const tokens = fs.readFileSync(path.join(folder, "tokens"), "utf8").split("\n");

// A verifier takes one app and one environment; what each token is for stands in its payload.
const verifiers = new Map();
const work = tokens.map((token) => {
  const payload = JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
  const key = `${payload.environment} ${payload.bundleId}`;
  if (!verifiers.has(key)) {
    // The app's number counts for notifications alone, but production wants one.
    verifiers.set(key, new library.SignedDataVerifier([root], false, payload.environment, payload.bundleId, 1));
  }
  return [verifiers.get(key), token];
});

const cpu = () => { const usage = process.cpuUsage(); return (usage.user + usage.system) / 1e6; };

(async () => {
  // Long enough for the compiler to have seen everything.
  for (const [verifier, token] of work.slice(0, 500)) await verifier.verifyAndDecodeTransaction(token);
  const began = performance.now();
  const begin = cpu();
  let count = 0;
  while (cpu() - begin < Number(seconds)) {
    for (let index = 0; index < 50; index += 1, count += 1) {
      const [verifier, token] = work[count % work.length];
      await verifier.verifyAndDecodeTransaction(token);
    }
  }
  console.log(`sample ${count} ${(performance.now() - began) / 1000} ${cpu() - begin}`);
})();
