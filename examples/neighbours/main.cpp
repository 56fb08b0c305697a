// Prints the lines of a file that are nearest to a query in meaning, with their cosines:
//   neighbours MODEL LINES QUERY [COUNT]
// MODEL is a folder of sentence-transformers, such as all-MiniLM-L6-v2, or of an encoder of
// transformers.
#include <posenc/text/sentence_encoder.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  if (lines.empty()) throw std::runtime_error(path + ": no lines of text");
  return lines;
}

void print_nearest(const std::string& folder, const std::string& path, const std::string& query,
                   int64_t count) {
  const auto lines = lines_of(path);
  const auto model = posenc::load_sentence_encoder(folder);
  const auto options = posenc::SentenceEncodeOptions().normalize(true);
  const torch::Tensor vectors = model.encode_document(lines, options);  // (N, D), each of length 1
  const torch::Tensor query_vector = model.encode_query({query}, options);    // (1, D)
  const torch::Tensor cosines = query_vector.matmul(vectors.t()).squeeze(0);  // (N)
  const auto [best, indices] = cosines.topk(std::min<int64_t>(count, cosines.size(0)));
  for (int64_t i = 0; i < best.size(0); ++i) {
    const auto index = static_cast<std::size_t>(indices[i].item<int64_t>());
    std::cout << best[i].item<float>() << '\t' << lines[index] << '\n';
  }
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: neighbours MODEL LINES QUERY [COUNT]\n";
    return 2;
  }
  try {
    print_nearest(argv[1], argv[2], argv[3], argc == 5 ? std::stoll(argv[4]) : 5);
  } catch (const c10::Error& error) {
    std::cerr << "neighbours: " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "neighbours: " << error.what() << '\n';
    return 1;
  }
}
