// A process that has one frozen encoder: how long it takes to have it, and the memory that it then
// takes. It loads the frozen file PATH, or freezes the folder PATH to 8 bits; encodes a batch if it
// is asked to; prints a line of JSON, and waits for the end of its input. Given no PATH it only
// prints and waits: what a program with posenc takes without a model. For frozen_files.py.

#include <ATen/ops/ones.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "posenc/models/frozen_file.h"

namespace {

// A field of a file of /proc/self in kB.
long field_of(const std::string& file, const std::string& name) {
  std::ifstream lines("/proc/self/" + file);
  for (std::string word; lines >> word;) {
    long value = 0;
    if (word == name + ":" && lines >> value) return value;
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "", mode = argc > 2 ? argv[2] : "";
  const long before = field_of("status", "VmRSS");
  const auto start = std::chrono::steady_clock::now();
  std::optional<posenc::FrozenEncoder> model;
  if (mode == "freeze") {
    model = posenc::freeze(posenc::load_encoder(path),
                           posenc::FreezeOptions().weights(posenc::WeightDtype::Int8));
  } else if (!path.empty()) {
    model =
        posenc::load_frozen_encoder(path, posenc::LoadFrozenOptions().check(mode != "unchecked"));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (mode == "encode") model->forward(at::ones({1, 128}, at::kLong));
  std::cout << "{\"seconds\": " << seconds.count() << ", \"before_kB\": " << before
            << ", \"rss_kB\": " << field_of("status", "VmRSS")
            << ", \"peak_kB\": " << field_of("status", "VmHWM") << "}" << std::endl;
  std::cin.get();
}
