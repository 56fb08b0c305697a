// Prints the lines of a file that answer a query best, with their scores, by an inverted index:
//   sparse MODEL LINES QUERY [COUNT]
// MODEL is a folder of a SparseEncoder, such as splade-cocondenser-ensembledistil.
//
// A sparse vector has weights for some words of the vocabulary. The index has, for each word, the
// lines that weigh it, so that a query reads the lists of its own words and nothing else.
#include <posenc/text/reranker.h>
#include <posenc/text/sparse_encoder.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lines.h"

class InvertedIndex {
 public:
  explicit InvertedIndex(const posenc::SparseVectors& documents)
      : count_(documents.size()), lists_(static_cast<std::size_t>(documents.width)) {
    each_entry(documents, [&](int64_t document, int64_t word, float weight) {
      lists_[static_cast<std::size_t>(word)].push_back({document, weight});
    });
  }

  // The products of queries with all documents, (queries, documents).
  torch::Tensor scores(const posenc::SparseVectors& queries) const {
    torch::Tensor all = torch::zeros({queries.size(), count_});
    float* const begin = all.data_ptr<float>();
    each_entry(queries, [&](int64_t query, int64_t word, float weight) {
      for (const Entry& entry : lists_[static_cast<std::size_t>(word)])
        begin[query * count_ + entry.document] += weight * entry.weight;
    });
    return all;
  }

 private:
  struct Entry {
    int64_t document;
    float weight;
  };

  template <typename Use>
  static void each_entry(const posenc::SparseVectors& vectors, const Use& use) {
    const int64_t* const begins = vectors.crow_indices.const_data_ptr<int64_t>();
    const int64_t* const words = vectors.col_indices.const_data_ptr<int64_t>();
    const float* const weights = vectors.values.const_data_ptr<float>();
    for (int64_t row = 0; row < vectors.size(); ++row)
      for (int64_t i = begins[row]; i < begins[row + 1]; ++i) use(row, words[i], weights[i]);
  }

  int64_t count_;
  std::vector<std::vector<Entry>> lists_;  // of each word
};

void print_best(const posenc::SparseEncoder& model, const std::vector<std::string>& lines,
                const std::string& query, int64_t count) {
  const InvertedIndex index(model.encode_document(lines));
  const torch::Tensor scores = index.scores(model.encode_query({query}));
  for (const auto& [line, score] : posenc::ranked_documents(scores[0], count))
    std::cout << score << '\t' << lines[static_cast<std::size_t>(line)] << '\n';
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: sparse MODEL LINES QUERY [COUNT]\n";
    return 2;
  }
  try {
    print_best(posenc::load_sparse_encoder(argv[1]), lines_of(argv[2]), argv[3],
               argc == 5 ? std::stoll(argv[4]) : 5);
  } catch (const c10::Error& error) {
    std::cerr << "sparse: " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "sparse: " << error.what() << '\n';
    return 1;
  }
}
