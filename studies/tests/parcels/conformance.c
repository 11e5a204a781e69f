/// Rules of the MPI standard for point-to-point messages. Each function tests one rule with two
/// processes and returns 0 if the rule holds. Prints the names of the rules that do not hold.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LARGE = 80 * 1024 };
static char data[LARGE], back[LARGE];
static int rank;

static int count_of(const MPI_Status *status) {
  int count;
  MPI_Get_count(status, MPI_BYTE, &count);
  return count;
}

// Two messages that match one receive: the first one sent is received first, also if the first is a
// rendezvous.
static int messages_do_not_overtake(void) {
  MPI_Request requests[20];
  int wrong = 0;
  if (rank == 0) {
    for (int i = 0; i < 20; ++i)
      MPI_Isend(data, i % 3 ? i : LARGE - i, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(20, requests, MPI_STATUSES_IGNORE);
  } else {
    MPI_Status status;
    for (int i = 0; i < 20; ++i) {
      MPI_Recv(back, LARGE, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &status);
      wrong |= count_of(&status) != (i % 3 ? i : LARGE - i);
    }
  }
  return wrong;
}

// Receives match in the order in which they were posted.
static int receives_match_in_posted_order(void) {
  int values[3] = {0}, wrong = 0;
  MPI_Request requests[3];
  if (rank == 1) {
    MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&values[1], 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&values[2], 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &requests[2]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    for (int i = 1; i <= 3; ++i) MPI_Send(&i, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; ++i) wrong |= values[i] != i + 1;
  }
  return wrong;
}

static int a_receive_selects_by_tag(void) {
  int value = 0, wrong = 0;
  if (rank == 0)
    for (int tag = 0; tag < 4; ++tag) MPI_Send(&tag, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
  else
    for (int tag = 3; tag >= 0; --tag) {
      MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      wrong |= value != tag;
    }
  return wrong;
}

static int wildcards_report_source_and_tag(void) {
  MPI_Status status = {-9, -9, -9, 0};
  int value = 42;
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 11, MPI_COMM_WORLD);
  if (rank == 0) return 0;
  MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  return status.MPI_SOURCE != 0 || status.MPI_TAG != 11 || value != 42;
}

// The message of a probe is the one that a receive with its source and tag then gets.
static int probe_sees(int bytes) {
  MPI_Request request;
  MPI_Status status;
  int wrong = 0;
  memset(data, bytes & 127, sizeof data);
  if (rank == 0) {
    MPI_Isend(data, bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    wrong = status.MPI_SOURCE != 0 || status.MPI_TAG != 3 || count_of(&status) != bytes;
    MPI_Recv(back, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
    wrong |= memcmp(data, back, (size_t)bytes) != 0;
  }
  return wrong;
}
static int probe_sees_eager_messages(void) { return probe_sees(100); }
static int probe_sees_rendezvous_messages(void) { return probe_sees(LARGE); }

// A probe does not see a message that an earlier receive of the process takes.
static int probe_skips_received_messages(void) {
  int first = 0, second = 0, wrong = 0;
  MPI_Request request;
  MPI_Status status;
  if (rank == 0) {
    MPI_Send(&(int){1}, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    MPI_Send(&(int){2}, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(&first, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    wrong = status.MPI_TAG != 2;
    MPI_Recv(&second, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong |= first != 1 || second != 2;
  }
  return wrong;
}

static int iprobe_reports_absence(void) {
  int flag = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  return rank == 0 && flag;
}

// A message longer than the receive's buffer is an error, writes no byte behind the buffer, and
// leaves the next one.
static int truncation_is_an_error(void) {
  int wrong = 0;
  for (int large = 0; large < 2; ++large) {
    for (int posted = 0; posted < 2; ++posted) {
      const int bytes = large ? LARGE : 64;
      MPI_Request request;
      MPI_Status status;
      memset(data, 1, sizeof data);
      memset(back, 0, sizeof back);
      if (rank == 1 && posted) MPI_Irecv(back, bytes / 2, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 0) {
        wrong |= MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD) != MPI_SUCCESS;
        MPI_Send(data, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      } else {
        const int code = posted
                             ? MPI_Wait(&request, &status)
                             : MPI_Recv(back, bytes / 2, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status);
        wrong |= code != MPI_ERR_TRUNCATE || back[bytes / 2 - 1] != 1 || back[bytes / 2] != 0;
        wrong |= MPI_Recv(back, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status) != MPI_SUCCESS;
      }
    }
  }
  return wrong;
}

static int a_process_sends_to_itself(void) {
  int wrong = 0;
  for (int bytes = 1; bytes <= LARGE; bytes *= LARGE) {
    MPI_Request requests[2];
    memset(data, 7, sizeof data);
    memset(back, 0, sizeof back);
    MPI_Isend(data, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(back, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    wrong |= memcmp(data, back, (size_t)bytes) != 0;
  }
  return wrong;
}

static int zero_bytes_are_a_message(void) {
  MPI_Status status = {-9, -9, -9, 9};
  if (rank == 0)
    MPI_Send(NULL, 0, MPI_INT, 1, 4, MPI_COMM_WORLD);
  else
    MPI_Recv(NULL, 0, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
  return rank == 1 && (status.MPI_TAG != 4 || count_of(&status) != 0);
}

static int communicators_separate_messages(void) {
  MPI_Comm other;
  int value = 0, wrong = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  if (rank == 0) {
    MPI_Send(&(int){1}, 1, MPI_INT, 1, 0, other);
    MPI_Send(&(int){2}, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong |= value != 2;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
    wrong |= value != 1;
  }
  MPI_Comm_free(&other);
  return wrong || other != MPI_COMM_NULL;
}

static int no_process_and_no_request(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  int flag = 0;
  MPI_Send(data, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Recv(back, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  int wrong =
      status.MPI_SOURCE != MPI_PROC_NULL || status.MPI_TAG != MPI_ANY_TAG || count_of(&status) != 0;
  MPI_Irecv(back, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  wrong |= status.MPI_SOURCE != MPI_PROC_NULL || request != MPI_REQUEST_NULL;
  MPI_Test(&request, &flag, &status);
  return wrong || !flag || status.MPI_SOURCE != MPI_ANY_SOURCE;
}

static int wrong_arguments_are_errors(void) {
  MPI_Request request;
  int wrong = MPI_Send(data, -1, MPI_BYTE, 0, 0, MPI_COMM_WORLD) != MPI_ERR_COUNT;
  wrong |= MPI_Send(data, 1, MPI_BYTE, 2, 0, MPI_COMM_WORLD) != MPI_ERR_RANK;
  wrong |= MPI_Send(data, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD) != MPI_ERR_RANK;
  wrong |= MPI_Isend(data, 1, MPI_BYTE, 0, -1, MPI_COMM_WORLD, &request) != MPI_ERR_TAG;
  wrong |= MPI_Isend(data, 1, 12345, 0, 0, MPI_COMM_WORLD, &request) != MPI_ERR_TYPE;
  wrong |= MPI_Irecv(NULL, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request) != MPI_ERR_BUFFER;
  wrong |= MPI_Barrier(77) != MPI_ERR_COMM;
  return wrong;
}

// A rendezvous ends while its sender computes. Only true with threads: the standard allows both.
static int messages_progress_without_calls(void) {
  static volatile int work;
  static double end_of_work, end_of_receive;
  MPI_Request request;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Isend(data, LARGE, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 1000000; ++i) ++work;
    end_of_work = MPI_Wtime();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(&end_of_receive, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return end_of_receive > end_of_work;
  }
  MPI_Recv(back, LARGE, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  end_of_receive = MPI_Wtime();
  MPI_Send(&end_of_receive, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
  return 0;
}

#define RULE(name) {#name, name}
int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*is_broken)(void);
  } rules[] = {RULE(messages_do_not_overtake),       RULE(receives_match_in_posted_order),
               RULE(a_receive_selects_by_tag),       RULE(wildcards_report_source_and_tag),
               RULE(probe_sees_eager_messages),      RULE(probe_sees_rendezvous_messages),
               RULE(probe_skips_received_messages),  RULE(iprobe_reports_absence),
               RULE(truncation_is_an_error),         RULE(a_process_sends_to_itself),
               RULE(zero_bytes_are_a_message),       RULE(communicators_separate_messages),
               RULE(no_process_and_no_request),      RULE(wrong_arguments_are_errors),
               RULE(messages_progress_without_calls)};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (unsigned i = 0; i < sizeof rules / sizeof *rules; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rules[i].is_broken()) printf("rank %d: %s\n", rank, rules[i].name);
  }
  MPI_Finalize();
  return 0;
}
