#include "pronouncer.h"

#include <fmt/ranges.h>
#include <posenc/inference/generate.h>
#include <posenc/positions/functional/pad_sequences.h>
#include <posenc/train/token_cross_entropy.h>
#include <posenc/weights/load.h>
#include <posenc/weights/manifest.h>
#include <posenc/weights/save.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#include <utility>

#include "messages.h"

namespace pronounce {
namespace {

// Letters have ids from 1 on; phonemes from 3 on, after the begin and end tokens.
constexpr int64_t kPad = 0, kBegin = 1, kEnd = 2;
constexpr int64_t kFirstLetter = 1, kLetters = 26;
constexpr int64_t kFirstPhoneme = 3;
constexpr int64_t kMaxLength = 64;  // of a word, in letters or phonemes

const std::string kMark = "pronounce.version";
const std::string kVersion = "2";

posenc::TransformerOptions model_options(const PronouncerOptions& options) {
  return posenc::TransformerOptions(kFirstLetter + kLetters,
                                    kFirstPhoneme + static_cast<int64_t>(options.phonemes.size()))
      .d_model(options.d_model)
      .num_heads(options.num_heads)
      .num_encoder_layers(options.layers)
      .num_decoder_layers(options.layers)
      .d_ff(options.d_ff)
      .max_len(kMaxLength + 2)  // plus the target's begin and end tokens
      .dropout(0.0)             // no word is seen often enough to be memorised
      .norm_first(true);
}

// Calls `visit` with each size and its name in the metadata; `Options` may be const.
template <typename Options, typename Visit>
void sizes(Options& options, Visit&& visit) {
  visit("pronounce.d_model", options.d_model);
  visit("pronounce.num_heads", options.num_heads);
  visit("pronounce.layers", options.layers);
  visit("pronounce.d_ff", options.d_ff);
}

// The same for what identifies the words that it has not seen.
template <typename Options, typename Visit>
void held_out_fields(Options& options, Visit&& visit) {
  visit("pronounce.words", options.words);
  visit("pronounce.held_out", options.held_out);
  visit("pronounce.seed", options.seed);
}

// Returns whether all of `text` is an integer.
bool parse(const std::string& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Pronouncer::Pronouncer(const PronouncerOptions& options)
    : model(model_options(options)), options_(options) {}

void Pronouncer::save(const std::string& path) const {
  posenc::SaveOptions::Metadata metadata = {{"format", "pt"}, {kMark, kVersion}};
  const auto add = [&](const char* name, int64_t value) { metadata[name] = std::to_string(value); };
  sizes(options_, add);
  held_out_fields(options_, add);
  metadata["pronounce.phonemes"] = fmt::format("{}", fmt::join(options_.phonemes, " "));
  posenc::save_weights(
      *model, path,
      posenc::SaveOptions().format(posenc::SaveFormat::Safetensors).metadata(metadata));
}

Pronouncer Pronouncer::load(const std::string& path) {
  auto metadata = posenc::read_manifest(path).metadata;
  if (metadata[kMark] != kVersion) {
    fail("{}: must be a model that `posenc-pronounce train` saved. Got another file of weights",
         path);
  }
  PronouncerOptions options;
  sizes(options, [&](const char* name, int64_t& size) {
    const std::string& text = metadata[name];
    if (!parse(text, size) || size < 1 || size > 65536) {
      fail("{}: {} must be a size. Got '{}'", path, name, text);
    }
  });
  held_out_fields(options, [&](const char* name, int64_t& number) {
    const std::string& text = metadata[name];
    if (!parse(text, number)) fail("{}: {} must be an integer. Got '{}'", path, name, text);
  });
  std::istringstream phonemes(metadata["pronounce.phonemes"]);
  for (std::string one; phonemes >> one;) options.phonemes.push_back(one);
  Pronouncer pronouncer(options);
  posenc::load_weights(pronouncer.model, path);
  return pronouncer;
}

std::vector<int64_t> Pronouncer::ids_of(const std::string& word) const {
  if (word.empty()) fail("a word must have letters");
  if (static_cast<int64_t>(word.size()) > kMaxLength) {
    fail("a word must have at most {} letters. Got {}", kMaxLength, word.size());
  }
  std::vector<int64_t> ids;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const int letter = std::tolower(static_cast<unsigned char>(word[i]));
    if (letter < 'a' || letter > 'z') {
      fail("a word must be spelt with the letters a-z, which the model has learnt. Got '{}'", word);
    }
    ids.push_back(kFirstLetter + letter - 'a');
  }
  return ids;
}

posenc::TokenPair Pronouncer::pair_of(const std::string& word, const Phonemes& phonemes) const {
  if (static_cast<int64_t>(phonemes.size()) > kMaxLength) {
    fail("{}: a word must have at most {} phonemes. Got {}", word, kMaxLength, phonemes.size());
  }
  posenc::TokenPair pair{ids_of(word), {kBegin}};
  for (const auto& phoneme : phonemes) {
    const auto found =
        std::lower_bound(options_.phonemes.begin(), options_.phonemes.end(), phoneme);
    pair.tgt.push_back(kFirstPhoneme + (found - options_.phonemes.begin()));
  }
  pair.tgt.push_back(kEnd);
  return pair;
}

torch::Tensor Pronouncer::loss(const posenc::PairBatch& batch, double label_smoothing) {
  const auto logits = model->forward(batch.src, batch.tgt_input(), batch.src_mask(),
                                     posenc::AttentionMask::causal());
  return posenc::functional::token_cross_entropy(logits, batch.tgt_labels(),
                                                 posenc::functional::TokenCrossEntropyFuncOptions()
                                                     .label_smoothing(label_smoothing)
                                                     .ignore_index(kPad));
}

std::vector<std::vector<Pronunciation>> Pronouncer::pronounce(const std::vector<std::string>& words,
                                                              int64_t beams, int64_t n_best) {
  if (words.empty()) return {};
  std::vector<torch::Tensor> letters;
  for (const auto& word : words) letters.push_back(torch::tensor(ids_of(word)));
  const auto src = posenc::functional::pad_sequences(
                       letters, posenc::functional::PadSequencesOptions().pad_id(kPad))
                       .ids;
  model->eval();
  const auto found = posenc::generate(model, src, posenc::AttentionMask::padding(src, kPad),
                                      posenc::GenerateOptions(kBegin, kEnd)
                                          .max_new_tokens(kMaxLength)
                                          .length_penalty(0.0)
                                          .num_beams(beams)
                                          .num_return_sequences(n_best));
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

std::vector<Phonemes> Pronouncer::best(const std::vector<LexiconEntry>& entries, int64_t beams) {
  std::vector<std::string> words;
  for (const auto& entry : entries) words.push_back(entry.word);
  std::vector<Phonemes> result;
  for (auto& found : pronounce(words, beams)) result.push_back(std::move(found.front().phonemes));
  return result;
}

}  // namespace pronounce
