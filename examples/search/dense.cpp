// Prints the lines of a file that answer a query best, with their scores:
//   dense MODEL RERANKER LINES QUERY [COUNT]
// MODEL is a folder of sentence-transformers, such as all-MiniLM-L6-v2, and RERANKER one of a
// cross-encoder, such as ms-marco-MiniLM-L6-v2.
//
// The search has three steps, each on fewer documents than the one before: vectors of 1 bit an
// entry, of which a million of 384 entries take 48 MB, are compared by the bits that differ; the
// query in float32 is multiplied with the bits of those that are near; and the reranker reads the
// best of these together with the query.
#include <posenc/models/functional/quantize.h>
#include <posenc/models/functional/similarity.h>
#include <posenc/text/reranker.h>
#include <posenc/text/sentence_encoder.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lines.h"

namespace F = posenc::functional;

// Bits as numbers, 1 and -1.
torch::Tensor signs_of(const torch::Tensor& bits, int64_t width) {
  const torch::Tensor shifts = torch::arange(7, -1, -1, torch::kByte);
  const torch::Tensor all = bits.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and(1);
  return all.flatten(1).narrow(1, 0, width).to(torch::kFloat) * 2 - 1;
}

void print_best(const posenc::SentenceEncoder& model, const posenc::Reranker& reranker,
                const std::vector<std::string>& lines, const std::string& query, int64_t count) {
  const torch::Tensor stored = F::pack_bits(model.encode_document(lines));  // (N, D / 8)

  const torch::Tensor vector = model.encode_query({query});  // (1, D)
  const torch::Tensor bits = F::pack_bits(vector);
  const torch::Tensor differing = F::hamming_distance(bits, stored).squeeze(0);  // (N)
  const int64_t near_count = std::min<int64_t>(10 * count, differing.numel());
  const auto near = std::get<1>(differing.topk(near_count, 0, /*largest=*/false));

  const torch::Tensor signs = signs_of(stored.index_select(0, near), vector.size(1));
  const auto by_vector =
      posenc::ranked_documents(F::dot_product(vector, signs).squeeze(0), 2 * count);

  std::vector<std::string> candidates;
  for (const auto& [index, score] : by_vector)
    candidates.push_back(lines[static_cast<std::size_t>(near[index].item<int64_t>())]);
  for (const auto& [index, score] :
       reranker.rank(query, candidates, posenc::RankOptions().top_k(count)))
    std::cout << score << '\t' << candidates[static_cast<std::size_t>(index)] << '\n';
}

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::cerr << "usage: dense MODEL RERANKER LINES QUERY [COUNT]\n";
    return 2;
  }
  try {
    print_best(posenc::load_sentence_encoder(argv[1]), posenc::load_reranker(argv[2]),
               lines_of(argv[3]), argv[4], argc == 6 ? std::stoll(argv[5]) : 5);
  } catch (const c10::Error& error) {
    std::cerr << "dense: " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "dense: " << error.what() << '\n';
    return 1;
  }
}
