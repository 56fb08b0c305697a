// Memory stays constant while serving: encodes and decodes random batches, and checks that neither
// resident memory nor address space grows, and that a search's cache is proportional to its output.
//
//   posenc-flat [MINUTES]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "inference/models.h"
#include "posenc/inference/freeze.h"

namespace posenc::testing {
namespace {

constexpr int64_t kMega = 1 << 20;
constexpr int64_t kMostSources = 32, kMostBeams = 4, kMostTokens = 64;

// A field of /proc/self/status, in bytes: VmSize, VmPeak or VmRSS.
int64_t memory(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string key; file >> key; file.ignore(1 << 10, '\n')) {
    int64_t kilobytes = 0;
    if (key == name + ":" && file >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

struct Usage {
  int64_t size = memory("VmSize"), peak = memory("VmPeak"), resident = memory("VmRSS");
};

void show(const char* what, const Usage& usage) {
  std::printf("%-28s address space %5lld MB (peak %lld), resident %5lld MB\n", what,
              static_cast<long long>(usage.size / kMega),
              static_cast<long long>(usage.peak / kMega),
              static_cast<long long>(usage.resident / kMega));
}

int failures = 0;

void expect_below(const char* what, int64_t grown, int64_t bound) {
  const bool fine = grown <= bound;
  std::printf("%s: %lld MB, at most %lld: %s\n", what, static_cast<long long>(grown / kMega),
              static_cast<long long>(bound / kMega), fine ? "fine" : "TOO MUCH");
  failures += fine ? 0 : 1;
}

Transformer model_of() {
  torch::manual_seed(1);
  Transformer model(TransformerOptions(1000, 1000)
                        .d_model(256)
                        .num_heads(4)
                        .num_encoder_layers(2)
                        .num_decoder_layers(4)
                        .d_ff(512)
                        .max_len(512));
  model->eval();
  return model;
}

class Server {
 public:
  void serve(int64_t sources, int64_t length, int64_t beams, int64_t max_length, int64_t steps) {
    const auto src = any_ids(dice_, sources, length, true);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto memory = frozen_.encode(src, mask);
    frozen_.decode(src, memory, AttentionMask::causal(), mask);
    generate(
        frozen_, src, mask,
        GenerateOptions(1, 2)
            .max_new_tokens(max_length)
            .num_beams(beams)
            .progress([&](const GenerateProgress& progress) { return progress.step < steps; }));
  }
  void serve_any() {
    serve(dice_(1, kMostSources), dice_(1, kMostTokens), dice_(1, kMostBeams),
          dice_(kMostTokens, 511), dice_(1, kMostTokens));
  }
  void serve_most() { serve(kMostSources, kMostTokens, kMostBeams, 511, kMostTokens); }

 private:
  Dice dice_{1};
  Transformer model_ = model_of();
  FrozenTransformer frozen_ = freeze(model_);
};

int run(double minutes) {
  Server server;
  // Warm up threads and their arenas. Small calls use one thread, and helpers take parts as they
  // are free: so these are many, with enough work for all.
  for (int i = 0; i < 8; ++i) server.serve(kMostSources, 4, kMostBeams, 4, 4);
  const Usage ready;
  show("ready", ready);
  // Four layers of 2 x 256 floats for 128 sequences of 511 tokens would be 511 MB; two tokens of
  // each are 2 MB.
  server.serve(kMostSources, 4, kMostBeams, 511, 2);
  const Usage two;
  show("two tokens of 511", two);
  expect_below("address space for two tokens", two.peak - ready.peak, 64 * kMega);
  expect_below("memory of two tokens", two.resident - ready.resident, 64 * kMega);

  server.serve_most();
  for (int i = 0; i < 4; ++i) server.serve_any();
  const Usage warm;
  show("the largest calls", warm);
  expect_below("address space of the largest call", warm.peak - ready.peak, 256 * kMega);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(60 * minutes);
  int64_t calls = 0;
  for (; std::chrono::steady_clock::now() < end; ++calls) server.serve_any();
  const Usage last;
  std::printf("%lld calls\n", static_cast<long long>(calls));
  show("at the end", last);
  expect_below("growth of the address space", last.size - warm.size, 128 * kMega);
  expect_below("growth of its peak", last.peak - warm.peak, 128 * kMega);
  expect_below("growth of resident memory", last.resident - warm.resident, 128 * kMega);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace posenc::testing

int main(int count, char** arguments) {
  return posenc::testing::run(count > 1 ? std::atof(arguments[1]) : 0.1);
}
