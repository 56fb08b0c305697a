// Opens each file named on the command line with read_manifest, like an ordinary program, and
// prints one line with the outcome and the cost so far: CODE KILOBYTES SECONDS MESSAGE.
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "posenc/weights/error.h"
#include "posenc/weights/manifest.h"

namespace {

// Not from getrusage, which also counts the parent's pages before exec.
long peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:") break;
  }
  long kilobytes = 0;
  status >> kilobytes;
  return kilobytes;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int count, char** paths) {
  for (int i = 1; i < count; ++i) {
    std::string code = "ok", message;
    try {
      posenc::read_manifest(paths[i]);
    } catch (const posenc::WeightsError& error) {
      code = to_string(error.code());
      message = error.what();
    }
    std::printf("%s %ld %.3f %s\n", code.c_str(), peak_kilobytes(), cpu_seconds(), message.c_str());
  }
  return 0;
}
