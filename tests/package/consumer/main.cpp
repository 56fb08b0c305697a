// A user's program: a table and its recipe, a module, its weights in a file, an error caught by its
// class.
#include <posenc/catalogue/identify.h>
#include <posenc/posenc.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "consumer: " << what << '\n';
  std::exit(EXIT_FAILURE);
}

bool refuses_missing(posenc::TokenEmbedding& module, const std::string& file) {
  try {
    posenc::load_weights(*module, file);
  } catch (const posenc::WeightsError& error) {
    return error.code() == posenc::WeightsErrorCode::NotFound;
  }
  return false;
}

}  // namespace

int main(int, char** arguments) {
  const auto table = posenc::sinusoid_table(posenc::SinusoidOptions(8), 4);
  require(posenc::identify(table).sinusoid, "identify() does not know a table of sinusoid_table()");

  const std::string file = std::string(arguments[0]) + ".safetensors";
  posenc::TokenEmbedding saved(posenc::TokenEmbeddingOptions(10, 4));
  posenc::TokenEmbedding loaded(posenc::TokenEmbeddingOptions(10, 4));
  posenc::save_weights(*saved, file);
  posenc::load_weights(*loaded, file);
  const auto ids = torch::arange(10);
  require(torch::equal(saved->forward(ids), loaded->forward(ids)), "the weights are others");
  require(refuses_missing(loaded, file + ".missing"), "no WeightsError for a missing file");

  std::cout << table[1] << '\n';  // last, since the tests look for it
}
