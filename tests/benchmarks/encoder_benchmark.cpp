// BERT-base from ids to its last hidden state (d 768, 12 heads, d_ff 3072, 12 layers, GELU),
// frozen, against transformers, torch.nn's fast path and CTranslate2 with the same weights, in
// separate processes (encoder_peers.py). peak_MB is the peak memory of the process during the call.

#include <ATen/ops/allclose.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>

#include "memory.h"
#include "posenc/functional/encoder_embeddings.h"
#include "posenc/inference/freeze.h"
#include "posenc/io/load.h"
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

// The source module is freed once it is frozen, so that there is one copy of the weights.
class Bert {
 public:
  Bert() {
    const posenc::PythonPeer writer("encoder_peers.py", "checkpoint");
    const auto file = writer.file("encoder.safetensors");
    posenc::TransformerEncoder encoder(
        posenc::TransformerEncoderOptions(posenc::TransformerLayerOptions(768, 12)
                                              .d_ff(3072)
                                              .activation(posenc::Activation::GELU)
                                              .layer_norm_eps(1e-12),
                                          12));
    posenc::load_weights(*encoder, file, posenc::LoadOptions().allow_unexpected(true));
    encoder_ = std::make_unique<posenc::FrozenTransformerEncoder>(posenc::freeze(encoder));
    posenc::StateDict tensors = posenc::load_tensors(file);
    const auto part = [&](const char* key) {
      return tensors[std::string("embeddings.") + key].clone();
    };
    embeddings_.tokens = part("word_embeddings.weight");
    embeddings_.positions = part("position_embeddings.weight");
    embeddings_.token_types = part("token_type_embeddings.weight");
    embeddings_.norm_weight = part("LayerNorm.weight");
    embeddings_.norm_bias = part("LayerNorm.bias");
    const auto ids = sources(kChecked);
    const auto tokens = ids != kPad;
    equals_transformers =
        at::allclose(run(ids).index({tokens}), tensors["out"].index({tokens}), 1e-4, 1e-5);
  }

  torch::Tensor run(const torch::Tensor& ids) const {
    const torch::NoGradGuard no_grad;
    return encoder_->forward(posenc::functional::encoder_embeddings(ids, embeddings_),
                             posenc::AttentionMask::padding(ids, kPad));
  }

  bool equals_transformers = false;

 private:
  std::unique_ptr<posenc::FrozenTransformerEncoder> encoder_;
  posenc::functional::EncoderEmbeddingsWeights embeddings_;
};

const Bert& bert() {
  static const Bert one;
  return one;
}

void ours(benchmark::State& state, const Lengths& lengths, int threads) {
  const auto ids = sources(lengths);
  const posenc::testing::Threads guard(threads);
  if (!bert().equals_transformers) state.SkipWithError("the encoder differs from transformers");
  posenc::benchmarks::reset_peak();
  posenc::benchmarks::timed(state, [&] { benchmark::DoNotOptimize(bert().run(ids)); });
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

const bool registered = [] {
  const Lengths ragged = {128, 20, 37, 64, 12, 90, 30, 41};
  Lengths many;
  for (int i = 0; i < 4; ++i) many.insert(many.end(), ragged.begin(), ragged.end());
  const std::pair<const char*, Lengths> cases[] = {{"1x16", {16}},
                                                   {"1x128", {128}},
                                                   {"8x128", Lengths(8, 128)},
                                                   {"8_ragged", ragged},
                                                   {"32_ragged", many}};
  for (const int threads : {1, 2})
    for (const auto& [title, lengths] : cases) {
      const auto name = [&, t = title](const std::string& who) {
        return std::string("bert/") + t + "/" + who + "/" + std::to_string(threads);
      };
      const auto as = [](benchmark::internal::Benchmark* made) {
        made->UseManualTime()->Unit(benchmark::kMillisecond);
      };
      as(benchmark::RegisterBenchmark(name("posenc").c_str(), [l = lengths, threads](auto& state) {
        ours(state, l, threads);
      }));
      for (const char* who : {"torch_nn", "transformers", "transformers_eager", "ctranslate2"})
        as(benchmark::RegisterBenchmark(
            name(who).c_str(),
            [who, l = lengths, threads](auto& state) { theirs(state, who, l, threads); }));
    }
  return true;
}();

}  // namespace
