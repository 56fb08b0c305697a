#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "support/temp_dir.h"

namespace posenc {

/// A Python process that runs `script` of this folder, given a new temporary folder and optionally
/// one more word, and then answers lines with lines. A separate process keeps the two thread pools
/// apart. The environment variable POSENC_PYTHON names another Python than the build's.
class PythonPeer {
 public:
  explicit PythonPeer(const std::string& script, const std::string& word = "") {
    int to_child[2], from_child[2];
    // O_CLOEXEC: a peer that inherits another's pipe would keep it from reaching end-of-file.
    if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0)
      throw std::runtime_error("pipe failed");
    child_ = fork();
    if (child_ == 0) {
      dup2(to_child[0], STDIN_FILENO);
      dup2(from_child[1], STDOUT_FILENO);
      const std::string path = POSENC_BENCHMARKS_DIR "/" + script;
      const char* const other = std::getenv("POSENC_PYTHON");
      const char* const python = other != nullptr ? other : POSENC_PYTHON;
      execl(python, python, "-W", "ignore", path.c_str(), folder_.path().c_str(),
            word.empty() ? nullptr : word.c_str(), nullptr);
      _exit(1);
    }
    close(to_child[0]);
    close(from_child[1]);
    in_ = fdopen(to_child[1], "w");
    out_ = fdopen(from_child[0], "r");
    answer();  // wait until it is ready
  }
  ~PythonPeer() {
    fclose(in_);
    fclose(out_);
    waitpid(child_, nullptr, 0);
  }

  std::string file(const std::string& name) const { return folder_ / name; }

  std::string ask(const std::string& line) {
    fprintf(in_, "%s\n", line.c_str());
    fflush(in_);
    return answer();
  }
  /// Sends the name of a function and returns the seconds that it took.
  double seconds(const std::string& function) { return std::stod(ask(function)); }

 private:
  std::string answer() {
    char line[256];
    if (fgets(line, sizeof line, out_) == nullptr) throw std::runtime_error("Python has failed");
    return line;
  }

  posenc::testing::TempDir folder_;
  pid_t child_ = -1;
  FILE *in_ = nullptr, *out_ = nullptr;
};

}  // namespace posenc
