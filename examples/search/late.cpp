// Prints the lines of a file that answer a query best, with their scores, by late interaction:
//   late MODEL LINES QUERY [COUNT]
// MODEL is a folder of a MultiVectorEncoder, of PyLate or of Stanford's ColBERT, such as
// colbertv2.0.
//
// A line has a vector for each of its tokens, which are compared with those of the query. The
// vectors of all lines are one matrix, of which a million tokens of 128 entries take 512 MB.
#include <posenc/text/multi_vector_encoder.h>
#include <posenc/text/reranker.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lines.h"

void print_best(const posenc::MultiVectorEncoder& model, const std::vector<std::string>& lines,
                const std::string& query, int64_t count) {
  const posenc::MultiVectors documents = model.encode_document(lines);
  const torch::Tensor scores = model.similarity(model.encode_query({query}), documents);
  for (const auto& [line, score] : posenc::ranked_documents(scores[0], count))
    std::cout << score << '\t' << lines[static_cast<std::size_t>(line)] << '\n';
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: late MODEL LINES QUERY [COUNT]\n";
    return 2;
  }
  try {
    print_best(posenc::load_multi_vector_encoder(argv[1]), lines_of(argv[2]), argv[3],
               argc == 5 ? std::stoll(argv[4]) : 5);
  } catch (const c10::Error& error) {
    std::cerr << "late: " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "late: " << error.what() << '\n';
    return 1;
  }
}
