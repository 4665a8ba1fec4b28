// Loaded before a program of the specification, which has a fixed address in it: the program connects to
// GATEWAY_URL instead, or listens on a free port and prints it.
const Module = require('node:module');

const load = Module._load;

Module._load = function (request, ...rest) {
  const loaded = load.call(this, request, ...rest);
  if (request !== 'ws') return loaded;
  return class extends loaded {
    static Server = class extends loaded.Server {
      constructor(options) {
        super({ ...options, host: '127.0.0.1', port: 0 });
        this.on('listening', () => console.log(`port ${this.address().port}`));
      }
    };

    constructor(_address, ...more) {
      super(process.env.GATEWAY_URL, ...more);
    }
  };
};
