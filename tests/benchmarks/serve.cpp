// Calls a frozen model of random weights as a server does, and prints how many calls it took, and
// the seconds of a mean and a median one, for tools/measure.py server:
//
//   posenc-serve MODEL BATCH LENGTH int8|float32 CALLERS THREADS SECONDS
//
// MODEL: minilm (d 384, 12 heads, d_ff 1536, 6 layers), ids to their last hidden state; or marian
// (d 512, 8 heads, d_ff 2048, 6 + 6 layers, 32,000 words), a greedy search of 48 tokens. CALLERS
// threads call the same model, each as soon as its last call is done. Every result must have the
// same bits.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "posenc/inference/freeze.h"
#include "posenc/inference/generate.h"
#include "posenc/models/frozen_encoder.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Asked {
  std::string model;
  int64_t batch, length;
  posenc::FreezeOptions options;
};

// A call of the model, which returns a number that depends on all of the result. No operation of
// LibTorch is measured with it: its threads would wait for each other.
std::function<int64_t()> call_of(const Asked& asked) {
  torch::manual_seed(1);
  const auto ids = torch::randint(3, 30000, {asked.batch, asked.length}, torch::kLong);
  if (asked.model == "minilm") {
    const auto layer = posenc::TransformerEncoderLayerOptions(384, 12).d_ff(1536);
    posenc::Encoder encoder(posenc::EncoderOptions(
        posenc::EncoderEmbeddingsOptions(30522, 384).position_rows(512).type_vocab_size(2),
        posenc::TransformerEncoderOptions(layer, 6)));
    encoder->eval();
    return [model = posenc::freeze(encoder, asked.options), ids] {
      const auto hidden = model.forward(ids).last_hidden_state;
      const auto* const value = static_cast<const int32_t*>(hidden.const_data_ptr());
      return std::accumulate(value, value + hidden.numel(), int64_t{0});
    };
  }
  posenc::Transformer transformer(posenc::TransformerOptions(32000, 32000));
  transformer->eval();
  const auto search =
      posenc::GenerateOptions(1, 2).eos_ids({}).suppress_tokens({2}).max_new_tokens(48);
  return [model = posenc::freeze(transformer, asked.options), ids, search] {
    int64_t sum = 0, index = 0;
    for (const auto& best : posenc::generate(model, ids, {}, search))
      for (const int64_t token : best[0].tokens) sum += token * (2 * index++ + 1);
    return sum;
  };
}

std::vector<double> times_of(const std::function<int64_t()>& call, double seconds) {
  std::vector<double> times;
  const int64_t expected = call();
  const auto start = Clock::now();
  for (auto last = start; std::chrono::duration<double>(last - start).count() < seconds;) {
    if (call() != expected) throw std::runtime_error("two calls differ");
    const auto now = Clock::now();
    times.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  }
  return times;
}

}  // namespace

int main(int count, char** given) {
  if (count != 8) return 2;
  const auto weights =
      std::string(given[4]) == "int8" ? posenc::WeightDtype::Int8 : posenc::WeightDtype::Float32;
  const auto call =
      call_of({given[1], std::stoll(given[2]), std::stoll(given[3]),
               posenc::FreezeOptions().weights(weights).threads(std::stoll(given[6]))});
  std::vector<std::vector<double>> times(std::stoul(given[5]));
  std::vector<std::thread> callers;
  for (auto& own : times) callers.emplace_back([&] { own = times_of(call, std::stod(given[7])); });
  for (std::thread& caller : callers) caller.join();
  std::vector<double> all;
  for (const auto& own : times) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  double sum = 0.0;
  for (const double one : all) sum += one;
  std::printf("%zu %.9f %.9f\n", all.size(), sum / static_cast<double>(all.size()),
              all[all.size() / 2]);
  return 0;
}
