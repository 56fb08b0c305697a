// A user's program: writes the ids of a text, and the text of the ids.
#include <posenc/tokenizers.h>

#include <iostream>

int main(int, char** arguments) {
  const auto tokenizer = posenc::tokenizers::Tokenizer::from_file(arguments[1]);
  const auto ids = tokenizer.encode_ids("Hello world");
  for (const int64_t id : ids) std::cout << id << ' ';
  std::cout << '\n' << tokenizer.decode(ids) << '\n';
  try {
    posenc::tokenizers::Tokenizer::from_file(arguments[2]);
  } catch (const posenc::Error& error) {
    std::cout << error.what() << '\n';
  }
}
