// A small BERT (d 384, 12 heads, d_ff 1536, 6 layers, as MiniLM has), BERT-base (d 768, 12 heads,
// d_ff 3072, 12 layers) and ModernBERT-base (d 768, 12 heads, d_ff 1152 with gates, 22 layers, a
// window of 64 in two of three) from ids to their last hidden state, frozen, in float32 and in 8
// bits, against transformers and ONNX Runtime with the same weights, BERT also against torch.nn's
// fast path and CTranslate2, the encoder of T5-base and DeBERTa-v3-base against transformers only,
// in separate processes (encoder_peers.py). peak_MB is the peak memory of the process during the
// call; once a model has run in both dtypes, it holds both.

#include <ATen/ops/allclose.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/weights/load.h"
#include "python_peer.h"
#include "support/threads.h"
#include "timed.h"

namespace {

using Lengths = std::vector<int64_t>;

constexpr int64_t kVocab = 30522, kPad = 0;
const Lengths kChecked = {23, 40, 1, 9};

posenc::PythonPeer& peer(const std::string& name) {
  static std::map<std::string, std::unique_ptr<posenc::PythonPeer>> made;
  auto& one = made[name];
  if (!one) one = std::make_unique<posenc::PythonPeer>("encoder_peers.py", name);
  return *one;
}

// (B, L) ids, padded; the same as sources() in encoder_peers.py.
torch::Tensor sources(const Lengths& lengths) {
  const int64_t batch = static_cast<int64_t>(lengths.size());
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  auto state = static_cast<uint64_t>(batch * 1000 + longest);
  auto ids = torch::full({batch, longest}, kPad, torch::kLong);
  for (int64_t row = 0; row < batch; ++row)
    for (int64_t i = 0; i < lengths[static_cast<size_t>(row)]; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      ids[row][i] = 1 + static_cast<int64_t>((state >> 33U) % (kVocab - 1));
    }
  return ids;
}

// A source module is freed once it is frozen.
class Model {
 public:
  Model(const posenc::PythonPeer& writer, posenc::WeightDtype weights) {
    encoder_ = std::make_unique<posenc::FrozenEncoder>(posenc::freeze(
        posenc::load_encoder(writer.file("model")), posenc::FreezeOptions().weights(weights)));
    const torch::Tensor out = posenc::load_tensors(writer.file("out.safetensors"))["out"];
    const auto ids = sources(kChecked);
    const auto tokens = ids != kPad;
    const auto got = run(ids).index({tokens}), expected = out.index({tokens});
    equals_transformers = weights == posenc::WeightDtype::Float32
                              ? at::allclose(got, expected, 1e-4, 1e-5)
                              : ((got - expected).norm() / expected.norm()).item<double>() < 0.1;
  }

  torch::Tensor run(const torch::Tensor& ids) const {
    return encoder_->forward(ids, posenc::EncoderInputs().attention_mask(ids != kPad))
        .last_hidden_state;
  }

  bool equals_transformers = false;

 private:
  std::unique_ptr<posenc::FrozenEncoder> encoder_;
};

// One name at a time, in memory and on disk.
const Model& model(const std::string& name, posenc::WeightDtype weights) {
  static std::string kept;
  static std::unique_ptr<posenc::PythonPeer> writer;
  static std::map<posenc::WeightDtype, std::unique_ptr<Model>> made;
  if (kept != name) {
    made.clear();
    writer = std::make_unique<posenc::PythonPeer>("encoder_peers.py", name + ":checkpoint");
    kept = name;
  }
  auto& one = made[weights];
  if (!one) one = std::make_unique<Model>(*writer, weights);
  return *one;
}

void ours(benchmark::State& state, const std::string& name, posenc::WeightDtype weights,
          const Lengths& lengths, int threads) {
  const auto ids = sources(lengths);
  const posenc::testing::Threads guard(threads);
  const Model& used = model(name, weights);
  if (!used.equals_transformers) state.SkipWithError("the encoder differs from transformers");
  posenc::benchmarks::reset_peak();
  posenc::benchmarks::timed(state, [&] { benchmark::DoNotOptimize(used.run(ids)); });
  state.counters["peak_MB"] = posenc::benchmarks::resident("VmHWM");
}

void theirs(benchmark::State& state, const std::string& who, const Lengths& lengths, int threads) {
  std::ostringstream line;
  line << threads;
  for (const int64_t length : lengths) line << ' ' << length;
  double seconds = 0.0, peak = 0.0;
  for (auto _ : state) {
    std::istringstream(peer(who).ask(line.str())) >> seconds >> peak;
    state.SetIterationTime(seconds);
  }
  state.counters["peak_MB"] = peak;
}

using Cases = std::vector<std::pair<const char*, Lengths>>;

void register_model(const std::string& model_name, const std::vector<const char*>& peers,
                    const Cases& cases) {
  for (const int threads : {1, 2})
    for (const auto& [title, lengths] : cases) {
      const auto name = [&, t = title](const std::string& who) {
        return model_name + "/" + t + "/" + who + "/" + std::to_string(threads);
      };
      const auto as = [](benchmark::internal::Benchmark* made) {
        made->UseManualTime()->Unit(benchmark::kMillisecond);
      };
      for (const auto& [who, weights] : {std::pair("posenc", posenc::WeightDtype::Float32),
                                         std::pair("posenc_int8", posenc::WeightDtype::Int8)})
        as(benchmark::RegisterBenchmark(
            name(who).c_str(), [model_name, l = lengths, threads, w = weights](auto& state) {
              ours(state, model_name, w, l, threads);
            }));
      for (const char* who : peers)
        as(benchmark::RegisterBenchmark(
            name(who).c_str(), [peer_name = model_name + ":" + who, l = lengths,
                                threads](auto& state) { theirs(state, peer_name, l, threads); }));
    }
}

// 8 sequences of 16 to 128 tokens.
Lengths evenly_spaced() {
  Lengths lengths;
  for (int64_t length = 16; length <= 128; length += 16) lengths.push_back(length);
  return lengths;
}

const bool registered = [] {
  const Lengths ragged = {128, 20, 37, 64, 12, 90, 30, 41};
  Lengths many;
  for (int i = 0; i < 4; ++i) many.insert(many.end(), ragged.begin(), ragged.end());
  const Cases cases = {{"1x16", {16}},
                       {"1x128", {128}},
                       {"8x128", Lengths(8, 128)},
                       {"1x2048", {2048}},
                       {"8_unequal", evenly_spaced()}};
  Cases of_bert = cases;
  of_bert.emplace_back("8_ragged", ragged);
  of_bert.emplace_back("32_ragged", many);
  register_model(
      "minilm",
      {"transformers", "onnxruntime", "onnxruntime_int8", "ctranslate2", "ctranslate2_int8"},
      cases);
  register_model("bert",
                 {"torch_nn", "transformers", "transformers_eager", "onnxruntime",
                  "onnxruntime_int8", "ctranslate2", "ctranslate2_int8"},
                 of_bert);
  register_model("modernbert", {"transformers", "onnxruntime", "onnxruntime_int8"}, cases);
  register_model("t5", {"transformers"}, cases);
  register_model("deberta", {"transformers"}, cases);
  return true;
}();

}  // namespace
