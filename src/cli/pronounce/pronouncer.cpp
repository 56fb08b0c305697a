#include "cli/pronounce/pronouncer.h"

#include <fmt/ranges.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>

#include "cli/error.h"
#include "posenc/functional/pad_sequences.h"
#include "posenc/functional/token_cross_entropy.h"
#include "posenc/io/load.h"
#include "posenc/io/manifest.h"
#include "posenc/io/save.h"
#include "posenc/models/generate.h"

namespace posenc::cli {
namespace {

// Ids of the letters: a is 1. Of the phonemes: the first is 3.
constexpr int64_t kPad = 0, kBegin = 1, kEnd = 2;
constexpr int64_t kFirstLetter = 1, kLetters = 26;
constexpr int64_t kFirstPhoneme = 3;
constexpr int64_t kMaxLength = 64;  // of a word, in letters and in phonemes

const std::string kMark = "pronounce.version";
const std::string kVersion = "1";

TransformerOptions model_options(const PronouncerOptions& options) {
  return TransformerOptions(kFirstLetter + kLetters,
                            kFirstPhoneme + static_cast<int64_t>(options.phonemes.size()))
      .d_model(options.d_model)
      .num_heads(options.num_heads)
      .num_encoder_layers(options.layers)
      .num_decoder_layers(options.layers)
      .d_ff(options.d_ff)
      .max_len(kMaxLength + 2)  // and a target's begin and end
      .dropout(0.0)             // no word is seen often enough to be learnt by heart
      .norm_first(true);
}

// The whole numbers of the options, by name.
template <typename Options, typename Visit>
void sizes(Options& options, Visit&& visit) {
  visit("pronounce.d_model", options.d_model);
  visit("pronounce.num_heads", options.num_heads);
  visit("pronounce.layers", options.layers);
  visit("pronounce.d_ff", options.d_ff);
}

}  // namespace

Pronouncer::Pronouncer(const PronouncerOptions& options)
    : model(model_options(options)), options_(options) {
  // As large as the positions that are added to them: N(0, 1) times sqrt(d_model) would drown
  // these.
  const double deviation = std::pow(static_cast<double>(options.d_model), -0.5);
  for (auto* embedding : {&model->src_embedding, &model->tgt_embedding}) {
    torch::nn::init::normal_((*embedding)->token_embedding->weight, 0.0, deviation);
  }
}

void Pronouncer::save(const std::string& path) const {
  SaveOptions::Metadata metadata = {{"format", "pt"}, {kMark, kVersion}};
  sizes(options_, [&](const char* name, int64_t size) { metadata[name] = std::to_string(size); });
  metadata["pronounce.phonemes"] = fmt::format("{}", fmt::join(options_.phonemes, " "));
  save_weights(*model, path, SaveOptions().format(SaveFormat::Safetensors).metadata(metadata));
}

Pronouncer Pronouncer::load(const std::string& path) {
  auto metadata = read_manifest(path).metadata;
  if (metadata[kMark] != kVersion) {
    refuse("{}: must be a model that `posenc train-pronounce` saved. Got another file of weights",
           path);
  }
  PronouncerOptions options;
  sizes(options, [&](const char* name, int64_t& size) {
    const std::string& text = metadata[name];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size() || size < 1 || size > 65536) {
      refuse("{}: {} must be a size. Got '{}'", path, name, text);
    }
  });
  std::istringstream phonemes(metadata["pronounce.phonemes"]);
  for (std::string one; phonemes >> one;) options.phonemes.push_back(one);
  Pronouncer pronouncer(options);
  load_weights(*pronouncer.model, path);
  return pronouncer;
}

std::vector<int64_t> Pronouncer::ids_of(const std::string& word) const {
  if (word.empty()) refuse("a word must have letters. Got an empty one");
  if (static_cast<int64_t>(word.size()) > kMaxLength) {
    refuse("a word must have at most {} letters. Got {}", kMaxLength, word.size());
  }
  std::vector<int64_t> ids;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const int letter = std::tolower(static_cast<unsigned char>(word[i]));
    if (letter < 'a' || letter > 'z') {
      refuse("a word must be spelt with the letters a-z, which the model has learnt. Got '{}'",
             word);
    }
    ids.push_back(kFirstLetter + letter - 'a');
  }
  return ids;
}

TokenPair Pronouncer::pair_of(const std::string& word, const Phonemes& phonemes) const {
  if (static_cast<int64_t>(phonemes.size()) > kMaxLength) {
    refuse("{}: a word must have at most {} phonemes. Got {}", word, kMaxLength, phonemes.size());
  }
  TokenPair pair{ids_of(word), {kBegin}};
  for (const auto& one : phonemes) {
    const auto found = std::lower_bound(options_.phonemes.begin(), options_.phonemes.end(), one);
    pair.tgt.push_back(kFirstPhoneme + (found - options_.phonemes.begin()));
  }
  pair.tgt.push_back(kEnd);
  return pair;
}

torch::Tensor Pronouncer::loss(const PairBatch& batch, double label_smoothing) {
  const auto logits =
      model->forward(batch.src, batch.tgt_input(), batch.src_mask(), AttentionMask::causal());
  return functional::token_cross_entropy(logits, batch.tgt_labels(),
                                         functional::TokenCrossEntropyFuncOptions()
                                             .label_smoothing(label_smoothing)
                                             .ignore_index(kPad));
}

std::vector<std::vector<Pronunciation>> Pronouncer::pronounce(const std::vector<std::string>& words,
                                                              int64_t beams, int64_t n_best) {
  if (words.empty()) return {};
  std::vector<torch::Tensor> letters;
  for (const auto& word : words) letters.push_back(torch::tensor(ids_of(word)));
  const auto src =
      functional::pad_sequences(letters, functional::PadSequencesOptions().pad_id(kPad)).ids;
  model->eval();
  const auto found = generate(*model, src, AttentionMask::padding(src, kPad),
                              GenerateOptions(kBegin, kEnd)
                                  .max_length(kMaxLength)
                                  .length_penalty(0.0)
                                  .beams(beams)
                                  .n_best(n_best));
  std::vector<std::vector<Pronunciation>> result;
  for (const auto& hypotheses : found) {
    result.emplace_back();
    for (const auto& hypothesis : hypotheses) {
      Pronunciation one{{}, hypothesis.score};
      for (const int64_t id : hypothesis.tokens) {
        if (id < kFirstPhoneme) continue;
        one.phonemes.push_back(options_.phonemes[static_cast<std::size_t>(id - kFirstPhoneme)]);
      }
      result.back().push_back(std::move(one));
    }
  }
  return result;
}

}  // namespace posenc::cli
