// posenc similarity: how similar the vectors of two files are.

#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/stored_vectors.h"
#include "cli/weights.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

struct SimilarityArguments {
  std::string a, b, name, output;
};

void compare(const SimilarityArguments& arguments) {
  check_output(arguments.output, {arguments.a, arguments.b});
  const StoredVectors a = read_stored_vectors(arguments.a), b = read_stored_vectors(arguments.b);
  StateDict result;
  result.insert("scores", similarity_scores(arguments.name, a, b));
  save_tensors(arguments.output, result);
  print("{}: {}\n", arguments.output, described(result));
}

void add_similarity(CLI::App& app) {
  auto arguments = std::make_shared<SimilarityArguments>();
  auto* sub = app.add_subcommand(
      "similarity",
      "Write how similar each vector of one file is to each of another: the larger, the more "
      "similar.");
  const std::string vectors =
      "vectors as posenc encode writes them: dense, sparse, of tokens, or in 8 bits or 1 bit an "
      "entry";
  sub->add_option("A", arguments->a, vectors)->required()->check(input_path());
  sub->add_option("B", arguments->b, vectors)->required()->check(input_path());
  sub->add_option("--similarity", arguments->name,
                  similarity_names() +
                      ": distances are negative numbers, and hamming is the number of bits that "
                      "differ; default: cosine, of sparse vectors dot, of bits hamming");
  sub->add_option("--out", arguments->output,
                  "safetensors for `scores` (N, M) float32, of the vectors of A and of B; "
                  "torch.save's format for .pt and .pth")
      ->required()
      ->check(output_path());
  add_threads(*sub);
  sub->footer(
      "Example:\n  posenc similarity queries.safetensors corpus.safetensors --similarity cosine "
      "--out scores.safetensors");
  sub->callback([arguments] { compare(*arguments); });
}

const Command kSimilarity{15, add_similarity};

}  // namespace
}  // namespace posenc::cli
