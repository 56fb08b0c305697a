#include "cli/gnuplot.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "cli/error.h"

extern char** environ;

namespace posenc::cli {
namespace {

// A nameless file, gone when closed: unlike a pipe it cannot block either side.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File nameless_file() {
  File file(std::tmpfile(), std::fclose);
  if (!file) refuse("no temporary file: {}", std::strerror(errno));
  return file;
}

std::string content(std::FILE* file) {
  std::string text;
  char part[65536];
  std::rewind(file);
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) text.append(part, count);
  return text;
}

// The environment without the terminal that a user may have chosen for other pictures: gnuplot does
// not begin where it lacks that one.
std::vector<char*> environment() {
  std::vector<char*> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("GNUTERM=")) result.push_back(*entry);
  }
  result.push_back(nullptr);
  return result;
}

// Runs gnuplot between three files; its exit status.
int spawn_and_wait(std::FILE* in, std::FILE* out, std::FILE* err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in), 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(out), 1);
  posix_spawn_file_actions_adddup2(&actions, fileno(err), 2);
  char name[] = "gnuplot", own[] = "-d", dash[] = "-";  // -d: without the user's ~/.gnuplot
  char* arguments[] = {name, own, dash, nullptr};
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, name, &actions, nullptr, arguments, environment().data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) refuse("gnuplot is not installed (Debian: apt-get install gnuplot-nox)");
  if (failure != 0) refuse("gnuplot does not start: {}", std::strerror(failure));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) refuse("gnuplot was lost: {}", std::strerror(errno));
  }
  return status;
}

// A picture has an end of its own: gnuplot does not say when the disk is full.
bool is_whole(std::string_view picture) {
  return picture.ends_with("IEND\xae\x42\x60\x82") || picture.ends_with("</svg>\n") ||
         picture.ends_with("</svg>\n\n");
}

}  // namespace

std::string gnuplot(const std::string& script) {
  const File in = nameless_file(), out = nameless_file(), err = nameless_file();
  if (std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() ||
      std::fflush(in.get()) != 0) {
    refuse("the plot's data could not be handed over: {}", std::strerror(errno));
  }
  std::rewind(in.get());
  const int status = spawn_and_wait(in.get(), out.get(), err.get());
  const std::string complaint = content(err.get());
  if (status != 0 || !complaint.empty()) refuse("gnuplot fails: {}", complaint);
  std::string picture = content(out.get());
  if (picture.empty()) refuse("gnuplot wrote nothing");
  if (!is_whole(picture))
    refuse("gnuplot's picture could not be written whole to a temporary file");
  return picture;
}

}  // namespace posenc::cli
