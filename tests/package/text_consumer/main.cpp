// A user's program: writes the ids of a text, the text of the ids, and the reason for which a file
// is refused.
#include <posenc/tokenizers/error.h>
#include <posenc/tokenizers/tensors.h>

#include <iostream>

int main(int, char** arguments) {
  const auto tokenizer = posenc::Tokenizer::from_file(arguments[1]);
  const auto batch = tokenizer.encode({"Hello world", "hello"});
  for (int64_t i = 0; i < batch.input_ids.numel(); ++i)
    std::cout << batch.input_ids.data_ptr<int64_t>()[i] << ' ';
  std::cout << '\n' << tokenizer.decode(batch.input_ids[0]) << '\n';
  try {
    posenc::Tokenizer::from_file(arguments[2]);
  } catch (const posenc::TokenizerError& error) {
    std::cout << error.what() << '\n';
  }
}
