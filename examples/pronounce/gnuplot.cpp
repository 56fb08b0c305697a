#include "gnuplot.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "messages.h"

extern char** environ;

namespace pronounce {
namespace {

// Unnamed files, removed when they are closed. With pipes, both processes could block while each
// waits for the other to read.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), std::fclose);
  if (!file) fail("cannot create a temporary file: {}", std::strerror(errno));
  return file;
}

std::string content(std::FILE* file) {
  std::string text;
  char part[65536];
  std::rewind(file);
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) text.append(part, count);
  return text;
}

// Removes GNUTERM, because gnuplot does not start if it lacks the terminal named there.
std::vector<char*> environment() {
  std::vector<char*> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "GNUTERM=", 8) != 0) result.push_back(*entry);
  }
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::string gnuplot(const std::string& script) {
  const File in = temporary_file(), out = temporary_file(), err = temporary_file();
  std::fwrite(script.data(), 1, script.size(), in.get());
  if (std::fflush(in.get()) != 0) fail("cannot create a temporary file: {}", std::strerror(errno));
  std::rewind(in.get());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in.get()), 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), 1);
  posix_spawn_file_actions_adddup2(&actions, fileno(err.get()), 2);
  char name[] = "gnuplot", defaults[] = "-d", input[] = "-";  // -d: ignore ~/.gnuplot
  char* arguments[] = {name, defaults, input, nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, name, &actions, nullptr, arguments, environment().data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) fail("gnuplot is not installed (Debian: apt-get install gnuplot-nox)");
  if (error != 0) fail("cannot run gnuplot: {}", std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("cannot wait for gnuplot: {}", std::strerror(errno));
  }

  const std::string complaint = content(err.get());
  if (status != 0 || !complaint.empty()) fail("gnuplot failed: {}", complaint);
  std::string picture = content(out.get());
  constexpr std::string_view kEnd = "IEND\xae\x42\x60\x82";  // gnuplot does not report a full disk
  if (picture.size() < kEnd.size() ||
      picture.compare(picture.size() - kEnd.size(), kEnd.size(), kEnd) != 0) {
    fail("gnuplot has not written a complete plot");
  }
  return picture;
}

}  // namespace pronounce
