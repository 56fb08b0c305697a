// One short text to its vector, by SentenceEncoder and by its tokenizer and encoder alone: what
// prompts, batches and stages cost besides. Both take turns, and beyond_us is the difference of
// their minima. The encoder has MiniLM's width and one layer, and random weights.

#include <ATen/ops/allclose.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "posenc/models/frozen_encoder.h"
#include "posenc/models/functional/pooling.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/text/sentence_encoder.h"
#include "support/temp_dir.h"
#include "support/threads.h"

namespace {

constexpr const char* kConfig = R"({"model_type": "bert", "vocab_size": 2000, "hidden_size": 384,
    "num_attention_heads": 12, "num_hidden_layers": 1, "intermediate_size": 1536})";

void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

// A folder with a model whose stages are a pooling and, if wanted, a norm.
class ModelFolder {
 public:
  explicit ModelFolder(bool normalizes) {
    posenc::Encoder encoder(posenc::encoder_options_from_hf(kConfig));
    const std::string path = folder_.path().string();
    posenc::save_pretrained(encoder, path);
    std::string words;
    for (const char* word : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
      words += std::string(word) + "\n";
    for (int i = 0; i < 1900; ++i) words += "w" + std::to_string(i) + "\n";
    write_text(path + "/vocab.txt", words);
    write_text(path + "/tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
    const auto stage = [](const std::string& kind, const std::string& at) {
      return R"({"name": ")" + kind + R"(", "path": ")" + at +
             R"(", "type": "sentence_transformers.models.)" + kind + "\"}";
    };
    write_text(path + "/modules.json",
               "[" + stage("Transformer", "") + ", " + stage("Pooling", "1_Pooling") +
                   (normalizes ? ", " + stage("Normalize", "2_Normalize") : "") + "]");
    write_text(path + "/1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  }
  std::string path() const { return folder_.path().string(); }

 private:
  posenc::testing::TempDir folder_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void one_text(benchmark::State& state, bool normalizes, const std::vector<std::string>& texts) {
  const posenc::testing::Threads one_thread(1);
  const torch::NoGradGuard no_grad;
  const ModelFolder folder(normalizes);
  const auto model = posenc::load_sentence_encoder(folder.path());
  const auto encoder = posenc::freeze(posenc::load_encoder(folder.path()));
  const auto options = posenc::TokenizerOptions()
                           .truncation(posenc::tokenizer::Truncation::LongestFirst)
                           .max_length(512);
  const auto parts = [&] {
    const auto batch = model.tokenizer().encode(texts, options);
    return encoder
        .forward(batch.input_ids, posenc::EncoderInputs()
                                      .attention_mask(batch.attention_mask)
                                      .token_type_ids(batch.token_type_ids))
        .last_hidden_state;
  };
  auto expected = posenc::functional::mean_pool(parts());
  if (normalizes) expected = posenc::functional::l2_normalize(expected);
  if (!at::allclose(model.encode(texts), expected, 1e-5, 1e-6)) {
    return state.SkipWithError("the vectors differ");
  }
  double whole = std::numeric_limits<double>::infinity(), alone = whole;
  for (auto _ : state) {
    auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(parts());
    alone = std::min(alone, seconds_since(start));
    start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(model.encode(texts));
    const double taken = seconds_since(start);
    whole = std::min(whole, taken);
    state.SetIterationTime(taken);
  }
  state.counters["parts_us"] = alone * 1e6;
  state.counters["beyond_us"] = (whole - alone) * 1e6;
}

const std::vector<std::string> kShort = {"w1 w20 w300 w4 w50 w600"};

BENCHMARK_CAPTURE(one_text, mean, false, kShort)
    ->Name("sentence/short/mean")
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime();
BENCHMARK_CAPTURE(one_text, normalized, true, kShort)
    ->Name("sentence/short/normalized")
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime();

}  // namespace
