#include <posenc/posenc.h>

#include <iostream>

int main() {
  const auto table = posenc::sinusoid_table(posenc::SinusoidOptions(8), 4);
  std::cout << table[1] << '\n';
}
