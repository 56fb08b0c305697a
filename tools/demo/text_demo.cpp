// A page of text through a word vocabulary, TokenAndPositionEmbedding, and back.
//   posenc-demo TEXT

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <posenc/nn/token_and_position_embedding.h>
#include <torch/utils.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int64_t kDim = 128;
constexpr int64_t kLength = 64;  // words of a sequence
constexpr int64_t kPad = 0;      // the id after the last word

struct Vocabulary {
  std::vector<std::string> words = {"<pad>"};
  std::map<std::string, int64_t> ids;

  int64_t id(const std::string& word) {
    const auto [at, fresh] = ids.emplace(word, static_cast<int64_t>(words.size()));
    if (fresh) words.push_back(word);
    return at->second;
  }
};

// Lower-case runs of letters, with the hyphens inside.
std::vector<std::string> words_of(std::istream& text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    while (!word.empty() && word.back() == '-') word.pop_back();
    if (!word.empty()) words.push_back(word);
    word.clear();
  };
  for (char c; text.get(c);) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte)) {
      word += static_cast<char>(std::tolower(byte));
    } else if (c == '-' && !word.empty()) {
      word += c;
    } else {
      finish();
    }
  }
  finish();
  return words;
}

// Words as ids in rows of kLength, the last one padded: (B, L).
torch::Tensor batch_of(const std::vector<std::string>& words, Vocabulary& vocabulary) {
  std::vector<int64_t> ids;
  for (const auto& word : words) ids.push_back(vocabulary.id(word));
  while (ids.size() % kLength != 0) ids.push_back(kPad);
  return torch::tensor(ids).view({-1, kLength});
}

// The token whose scaled row is nearest to each vector (..., D), by Euclidean distance.
torch::Tensor nearest_tokens(const torch::Tensor& vectors, const torch::Tensor& rows) {
  return torch::cdist(vectors.reshape({-1, kDim}), rows)
      .argmin(1)
      .view(vectors.sizes().slice(0, 2));
}

void print_similarity(const torch::Tensor& table) {
  const auto rows = table.slice(0, 0, 8);
  const auto dots = rows.matmul(rows.t());  // (8, 8)
  fmt::print("\nSimilarity of positions 0 to 7, PE(p) . PE(q); it depends on |p - q| alone:\n");
  for (int64_t p = 0; p < dots.size(0); ++p) {
    for (int64_t q = 0; q < dots.size(1); ++q) fmt::print("{:7.2f}", dots[p][q].item<float>());
    fmt::print("\n");
  }
}

int demo(std::istream& text) {
  const at::NoGradGuard no_grad;
  torch::manual_seed(0);
  const auto words = words_of(text);
  if (words.empty()) {
    fmt::print(stderr, "posenc-demo: the text has no words\n");
    return 1;
  }
  Vocabulary vocabulary;
  const auto ids = batch_of(words, vocabulary);  // (B, L)
  const auto vocab_size = static_cast<int64_t>(vocabulary.words.size());

  posenc::TokenAndPositionEmbedding embed(
      posenc::TokenAndPositionEmbeddingOptions(vocab_size, kDim, kLength).padding_idx(kPad));
  embed->eval();
  const auto embedded = embed->forward(ids);  // (B, L, D)

  // Decode: subtract the positions and find the nearest scaled token.
  const auto table = embed->position_encoding->pe.squeeze(0);  // (L, D)
  const auto scaled = embed->token_embedding->weight * embed->options.scale().factor(kDim);
  const auto tokens = nearest_tokens(embedded - table, scaled);  // (B, L)
  const auto real = ids != kPad;
  const auto recovered = (tokens == ids).logical_and(real).sum().item<int64_t>();
  const auto count = static_cast<int64_t>(words.size());
  const auto without = nearest_tokens(embedded, scaled);
  const auto still = (without == ids).logical_and(real).sum().item<int64_t>();

  fmt::print("{} words, {} of them distinct, as {} sequences of {} ids\n", count, vocab_size - 1,
             ids.size(0), kLength);
  fmt::print("ids ({}, {}) -> embeddings ({}, {}, {})\n", ids.size(0), ids.size(1),
             embedded.size(0), embedded.size(1), embedded.size(2));
  fmt::print("first words:");
  for (int64_t i = 0; i < std::min<int64_t>(8, count); ++i) {
    fmt::print(" {}={}", words[i], ids[0][i].item<int64_t>());
  }
  const auto used = scaled.slice(0, 1);
  fmt::print(
      "\nscaled tokens: mean {:.2f}, variance {:.1f} (N(0, 1) times sqrt({}): {} expected)\n",
      used.mean().item<float>(), used.var().item<float>(), kDim, kDim);
  fmt::print("positions:     variance {:.2f}; tokens outweigh them {:.0f} to 1\n",
             table.var().item<float>(), used.var().item<float>() / table.var().item<float>());
  fmt::print("back to words: {} of {} ({:.1f} %) after subtracting the positions, {} without\n",
             recovered, count, 100.0 * static_cast<double>(recovered) / static_cast<double>(count),
             still);
  print_similarity(table);
  return recovered == count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) == "--help") {
    fmt::print(argc == 2 ? stdout : stderr, "usage: posenc-demo TEXT\n");
    return argc == 2 ? 0 : 2;
  }
  std::ifstream text(argv[1]);
  if (!text) {
    fmt::print(stderr, "posenc-demo: cannot read {}\n", argv[1]);
    return 1;
  }
  return demo(text);
}
