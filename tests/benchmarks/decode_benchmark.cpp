// A frozen Transformer (d 512, 8 heads, d_ff 2048, 6 + 6 layers, 32,000 words), in float32 and in
// 8 bits, against CTranslate2,
// transformers and torch.nn with the same weights, in separate processes (decode_peers.py): the
// encoder, a ragged batch, and 64 tokens for each source, greedy and with four beams; and decoders
// of the shapes of NLLB-600M and T5-base. peak_MB is
// the peak memory of the process during the call: weights, runtime, and what the call allocates.

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <sstream>

#include "memory.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/seq2seq.h"
#include "python_peer.h"
#include "support/threads.h"
#include "timed.h"

namespace {

using posenc::AttentionMask;
using posenc::FrozenTransformer;
using posenc::GenerateOptions;

// As SHAPES in decode_peers.py.
struct Shape {
  std::string name;
  int64_t start, end, pad, first, ids, steps;
};
const Shape kMarian = {"marian", 31999, 0, 31999, 1, 31998, 64};
const Shape kNllb = {"nllb", 2, 2, 1, 4, 256202, 24};
const Shape kT5 = {"t5", 0, 1, 0, 2, 32126, 24};

posenc::PythonPeer& peer(const std::string& name) {
  static std::map<std::string, std::unique_ptr<posenc::PythonPeer>> made;
  auto& one = made[name];
  if (!one) one = std::make_unique<posenc::PythonPeer>("decode_peers.py", name);
  return *one;
}

// The source module is freed once it is frozen, so that there is one copy of the weights.
const FrozenTransformer& model(posenc::WeightDtype weights, const Shape& shape) {
  static std::map<std::pair<posenc::WeightDtype, std::string>, FrozenTransformer> made;
  const std::pair key(weights, shape.name);
  const auto known = made.find(key);
  if (known != made.end()) return known->second;
  made.clear();  // one at a time, as in a server
  const auto options = posenc::FreezeOptions().weights(weights);
  const auto folder = peer("checkpoint:" + shape.name).file("model");
  return made.emplace(key, posenc::freeze(posenc::load_seq2seq(folder).model, options))
      .first->second;
}

// One case, as sent to the peers.
struct Case {
  std::string act;
  int64_t batch, length, beams, threads;
  Shape shape = kMarian;

  std::string line() const {
    std::ostringstream text;
    text << act << ' ' << batch << ' ' << length << ' ' << beams << ' ' << threads;
    return text.str();
  }
  std::string name(const std::string& who) const {
    std::ostringstream text;
    text << (shape.name == kMarian.name ? "decode" : shape.name) << '/' << act
         << (beams > 1 ? "_beams" : "") << '/' << who << '/' << batch << '/' << length << '/'
         << threads;
    return text.str();
  }
};

// (B, S) ids, padded; the same as sources() in decode_peers.py.
torch::Tensor sources(const Case& one) {
  auto state = static_cast<uint64_t>(one.batch * 1000 + one.length);
  const auto draw = [&](int64_t end) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int64_t>((state >> 33U) % static_cast<uint64_t>(end));
  };
  auto ids = torch::full({one.batch, one.length}, one.shape.pad, torch::kLong);
  for (int64_t row = 0; row < one.batch; ++row) {
    const int64_t first = draw(one.length), second = draw(one.length);
    const bool is_short = one.act == "ragged" && row + 1 < one.batch;
    const int64_t size = is_short ? 1 + first * (1 + second) / one.length : one.length;
    for (int64_t i = 0; i < size; ++i) ids[row][i] = one.shape.first + draw(one.shape.ids);
  }
  return ids;
}

std::string decode(const FrozenTransformer& frozen, const Case& one, const torch::Tensor& ids) {
  const auto options = GenerateOptions(one.shape.start, one.shape.end)
                           .eos_ids({})
                           .suppress_tokens({one.shape.end, one.shape.pad})
                           .max_new_tokens(one.shape.steps)
                           .num_beams(one.beams);
  int64_t sum = 0, index = 0;
  for (const auto& best : posenc::generate(frozen, ids, {}, options)) {
    for (const int64_t token : best[0].tokens) sum += token * (2 * index++ + 1);
  }
  return std::to_string(sum);
}

void ours(benchmark::State& state, posenc::WeightDtype weights, const Case& one) {
  const auto ids = sources(one);
  const auto mask =
      one.act == "ragged" ? AttentionMask::padding(ids, one.shape.pad) : AttentionMask();
  const posenc::testing::Threads guard(static_cast<int>(one.threads));
  const FrozenTransformer& frozen =
      model(weights, one.shape);  // or the first case would include loading it
  posenc::benchmarks::reset_peak();
  posenc::benchmarks::timed(state, [&] {
    if (one.act == "decode") {
      state.SetLabel(decode(frozen, one, ids));
    } else {
      benchmark::DoNotOptimize(frozen.encode(ids, mask));
    }
  });
  state.counters["peak_MB"] = posenc::benchmarks::resident("VmHWM");
}

void theirs(benchmark::State& state, const std::string& who, const Case& one) {
  double seconds = 0.0, peak = 0.0;
  std::string tokens;
  for (auto _ : state) {
    std::istringstream(peer(who + ":" + one.shape.name).ask(one.line())) >> seconds >> tokens >>
        peak;
    state.SetIterationTime(seconds);
  }
  state.SetLabel(tokens);
  state.counters["peak_MB"] = peak;
}

const bool registered = [] {
  const auto add = [](const Case& one, const std::vector<std::string>& peers) {
    const auto as = [](benchmark::internal::Benchmark* made) {
      made->UseManualTime()->Unit(benchmark::kMillisecond);
    };
    using posenc::WeightDtype;
    for (const auto& [name, weights] :
         {std::pair("posenc", WeightDtype::Float32), std::pair("posenc_int8", WeightDtype::Int8)}) {
      as(benchmark::RegisterBenchmark(
          one.name(name).c_str(),
          [weights = weights, one](benchmark::State& state) { ours(state, weights, one); }));
    }
    for (const std::string& who : peers) {
      as(benchmark::RegisterBenchmark(
          one.name(who).c_str(), [who, one](benchmark::State& state) { theirs(state, who, one); }));
    }
  };
  for (const int64_t threads : {1, 2}) {
    add({"encode", 1, 16, 1, threads},
        {"torch_nn", "compile", "hf", "ctranslate2", "ctranslate2_int8"});
    add({"encode", 1, 128, 1, threads},
        {"torch_nn", "compile", "hf", "ctranslate2", "ctranslate2_int8"});
    add({"encode", 8, 128, 1, threads},
        {"torch_nn", "compile", "hf", "ctranslate2", "ctranslate2_int8"});
    if (threads == 2)
      add({"encode", 16, 512, 1, threads}, {"torch_nn", "ctranslate2", "ctranslate2_int8"});
    add({"ragged", 32, 64, 1, threads}, {"torch_nn", "ctranslate2", "ctranslate2_int8"});
    for (const int64_t batch : {1, 8, 32})
      add({"decode", batch, 32, 1, threads}, {"ctranslate2", "ctranslate2_int8"});
    add({"decode", 8, 32, 4, threads}, {"ctranslate2", "ctranslate2_int8", "hf"});
  }
  for (const Shape& shape : {kNllb, kT5})
    for (const auto& [batch, beams] : {std::pair(1, 1), {8, 1}, {32, 1}, {1, 4}, {8, 4}})
      add({"decode", batch, 16, beams, 1, shape}, {"ctranslate2", "ctranslate2_int8", "hf"});
  return true;
}();

}  // namespace
