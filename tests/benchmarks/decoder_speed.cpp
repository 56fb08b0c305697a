// posenc's side of tools/bench_decoders.py:
//
//   posenc-decoder-speed FOLDER float32|int8|bfloat16|compute_bfloat16
//
// Prints `ready`. Each line of stdin, `ROWS LENGTH TOKENS THREADS`, continues that many prompts of
// LENGTH tokens by TOKENS, greedily, and is answered with the seconds that this took, the tokens'
// fingerprint, and the peak memory of the process during the call in MB.

#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "memory.h"
#include "posenc/models/frozen_decoder.h"

namespace {

using Clock = std::chrono::steady_clock;

posenc::FreezeOptions options_of(const std::string& name) {
  using posenc::WeightDtype;
  posenc::FreezeOptions options;
  if (name == "int8") options.weights(WeightDtype::Int8);
  if (name == "bfloat16") options.weights(WeightDtype::BFloat16);
  if (name == "compute_bfloat16")
    options.weights(WeightDtype::BFloat16).compute(posenc::ComputeDtype::BFloat16);
  return options;
}

// As prompts() in bench_decoders.py.
std::vector<std::vector<int64_t>> prompts_of(int64_t rows, int64_t length, int64_t vocab) {
  std::vector<std::vector<int64_t>> prompts(static_cast<std::size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < length; ++i)
      prompts[static_cast<std::size_t>(row)].push_back(3 + (i * 7919 + row * 104729 + i * i * 31) %
                                                               (vocab - 3));
  }
  return prompts;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 1;
  const auto model = posenc::freeze(posenc::load_decoder(arguments[1]), options_of(arguments[2]));
  const int64_t vocab = model.options().model().embeddings()->vocab_size();
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    int64_t rows = 0, length = 0, tokens = 0;
    int threads = 1;
    std::istringstream(line) >> rows >> length >> tokens >> threads;
    at::set_num_threads(threads);
    const auto prompts = prompts_of(rows, length, vocab);
    const auto search =
        posenc::GenerateOptions(1, 2).eos_ids({}).suppress_tokens({2}).max_new_tokens(tokens);
    posenc::benchmarks::reset_peak();
    const auto start = Clock::now();
    const auto found = posenc::generate(model, prompts, search);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    int64_t sum = 0, index = 0;
    for (const auto& best : found)
      for (const int64_t token : best[0].tokens) sum += token * (2 * index++ + 1);
    std::printf("%.6f %lld %.0f\n", seconds, static_cast<long long>(sum),
                posenc::benchmarks::resident("VmHWM"));
    std::fflush(stdout);
  }
  return 0;
}
