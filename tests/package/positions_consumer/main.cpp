// A user's program: saves a module of this library, loads it again, and writes sin(1).
#include <posenc/positions.h>
#include <posenc/weights.h>

#include <cstdio>

int main(int, char** arguments) {
  posenc::PositionalEncoding positions(8);
  posenc::TokenEmbedding tokens(posenc::TokenEmbeddingOptions(10, 8));
  posenc::save_weights(tokens, arguments[1]);
  posenc::load_weights(tokens, arguments[1]);
  std::printf("%.4f\n", positions->pe[0][1][0].item<double>());
}
