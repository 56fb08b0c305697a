#include "models/sentence/stage_settings.h"

#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace posenc {
namespace {

using nlohmann::json;

bool is_ascii(const std::string& word) {
  return std::all_of(word.begin(), word.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

std::string lower_case(std::string word) {
  for (char& letter : word) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return word;
}

// Finds the weights of words.
class WordWeightTable {
 public:
  explicit WordWeightTable(const Settings& config)
      : config_(config),
        weights_(config.value("word_weights")),
        unknown_(static_cast<float>(config.real("unknown_word_weight", 1.0))) {
    if (!weights_.is_object()) config.refuse("word_weights", "must be an object of numbers");
    for (const auto& [word, weight] : weights_.items()) {
      if (!weight.is_number()) config.refuse("word_weights", "must be numbers", {{word, weight}});
      has_other_letters_ = has_other_letters_ || !is_ascii(word);
    }
  }

  float operator()(const std::string& word) const {
    auto found = weights_.find(word);
    if (found == weights_.end() && is_ascii(word)) found = weights_.find(lower_case(word));
    if (found != weights_.end()) return found->get<float>();
    // The Kelvin sign is the only other letter whose lower-case form is one of ASCII.
    const bool is_unknown =
        is_ascii(word) || (!has_other_letters_ && word.find("\u212A") == std::string::npos);
    if (!is_unknown) {
      config_.refuse("word_weights",
                     "must have each word of `vocab` that has letters outside ASCII: posenc does "
                     "not look up its lower-case form",
                     word);
    }
    return unknown_;
  }

 private:
  const Settings& config_;
  const json& weights_;
  float unknown_;
  bool has_other_letters_ = false;
};

}  // namespace

at::Tensor word_weights_in(const Settings& config) {
  const WordWeightTable weight_of(config);
  const json& vocab = config.value("vocab");
  if (!vocab.is_array() || vocab.empty()) config.refuse("vocab", "must be a list of words");
  std::vector<float> weights;
  weights.reserve(vocab.size());
  for (const json& word : vocab) {
    if (!word.is_string()) config.refuse("vocab", "must be a list of words", word);
    weights.push_back(weight_of(word.get<std::string>()));
  }
  return at::tensor(weights, at::kFloat);
}

}  // namespace posenc
